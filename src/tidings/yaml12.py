"""YAML 1.2 core, several documents in one text.

`NO`, `2024-01-01` and `1:30` stay texts, `010` is ten, keys are always the text that was written.

Values are built from the parser's events, one by one, with a stack of our own: composing a tree would recurse on the C stack,
where a deep text ends the process. What a text may stand for is counted on the way, so that a bad text costs no more than its
good part.

| refused                                        | because                                                     |
|------------------------------------------------|-------------------------------------------------------------|
| more than MOST_NODES values, aliases written out | a few lines of aliases mean millions of values              |
| more than MOST_DEPTH levels                    | nothing that reads the value later may run out of stack     |
| texts longer than MOST_CHARACTERS in all       | one long text may be repeated by aliases                    |
| more than MOST_DIRECTIVES                      | the parser compares each with all others                    |
| a key given twice, or one that is not a text   | nobody can say which value was meant                        |
| merge keys (`<<`), tags of other kinds         | they belong to YAML 1.1, or to other programs               |
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, Final

import yaml

from tidings.errors import Malformed, shortened

MOST_NODES: Final = 100_000
MOST_DEPTH: Final = 128
MOST_CHARACTERS: Final = 4 << 20
MOST_DIRECTIVES: Final = 10
LONGEST_NUMBER: Final = 400

_NULL = re.compile(r"(?:~|null|Null|NULL|)")
_BOOL = re.compile(r"(?:true|True|TRUE|false|False|FALSE)")
_INT = re.compile(r"(?:[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+)")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_DIRECTIVE = re.compile(r"^%", re.MULTILINE)
_TAG = "tag:yaml.org,2002:"
_CONTAINERS = {"seq": list, "map": dict}

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def documents_in(text: str) -> list[Any]:
    """The documents of a text; empty ones are left out. Raises Malformed with the place."""
    try:
        return [one for one in _documents(text) if one is not None]
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise Malformed(f"this cannot be read as YAML: {error.problem or error.context}", at=_place(mark)) from error
    except yaml.reader.ReaderError as error:
        place = _place_of(text, error.position)
        raise Malformed(f"a character (code {error.character:#x}) may not stand in YAML", at=place) from error
    except UnicodeEncodeError as error:
        raise Malformed("half a surrogate pair may not stand in YAML", at=f"character {error.start + 1}") from error
    except yaml.YAMLError as error:
        raise Malformed("this cannot be read as YAML") from error


def _documents(text: str) -> Iterator[Any]:
    if len(_DIRECTIVE.findall(text)) > MOST_DIRECTIVES:
        raise Malformed("there are too many lines that begin with %", expected=f"at most {MOST_DIRECTIVES} directives")
    counted = _Counted()
    building: _Building | None = None
    with closing(yaml.parse(text, Loader=_Loader)) as events:
        for event in events:
            if isinstance(event, yaml.DocumentStartEvent):
                building = _Building(counted)
            elif isinstance(event, yaml.DocumentEndEvent) and building is not None:
                yield building.whole
            elif isinstance(event, yaml.NodeEvent | yaml.CollectionEndEvent) and building is not None:
                building.take(event)


@dataclass(slots=True)
class _Counted:
    """What the documents stand for so far, aliases written out."""

    nodes: int = 0
    characters: int = 0

    def add(self, nodes: int, characters: int, mark: Any) -> None:
        self.nodes += nodes
        self.characters += characters
        if self.nodes > MOST_NODES:
            raise Malformed("the documents hold too much", at=_place(mark), expected=f"at most {MOST_NODES} values in all")
        if self.characters > MOST_CHARACTERS:
            raise Malformed("the texts are too long", at=_place(mark), expected=f"at most {MOST_CHARACTERS} characters in all")


@dataclass(frozen=True, slots=True)
class _Anchored:
    """What an alias stands for. `text` is what was written, where it may be a key; `height`: the levels in it."""

    value: Any
    text: str | None
    nodes: int
    characters: int
    height: int


@dataclass(slots=True)
class _Open:
    """A list or object that is not complete yet. `nodes` and `characters`: what was counted before it."""

    value: list[Any] | dict[str, Any]
    anchor: str | None
    nodes: int
    characters: int
    height: int = 1
    key: str | None = None


@dataclass(slots=True)
class _Building:
    """One document while its events come."""

    counted: _Counted
    whole: Any = None
    stack: list[_Open] = field(default_factory=list)
    anchors: dict[str, _Anchored] = field(default_factory=dict)

    def take(self, event: Any) -> None:
        match event:
            case yaml.ScalarEvent():
                self._scalar(event)
            case yaml.AliasEvent():
                self._alias(event)
            case yaml.CollectionStartEvent():
                self._open(event)
            case _:
                self._close(event)

    def _scalar(self, event: Any) -> None:
        self.counted.add(1, len(event.value), event.start_mark)
        if self._wants_key():
            self._take_key(event.value, event, plain=event.implicit[0])
            value: Any = event.value
        else:
            value = _value(event)
            self._place(value, 0, event)
        if event.anchor is not None:
            self.anchors[event.anchor] = _Anchored(value, event.value, 1, len(event.value), 0)

    def _alias(self, event: Any) -> None:
        found = self.anchors.get(event.anchor)
        if found is None:
            known = any(one.anchor == event.anchor for one in self.stack)
            raise _refused(f"*{event.anchor} {'is part of itself' if known else 'is not known'}", event)
        self.counted.add(found.nodes, found.characters, event.start_mark)
        if not self._wants_key():
            self._place(found.value, found.height, event)
        elif found.text is None:
            raise _refused("a key must be a text", event)
        else:
            self._take_key(found.text, event)

    def _open(self, event: Any) -> None:
        if self._wants_key():
            raise _refused("a key must be a text", event)
        kind = "seq" if isinstance(event, yaml.SequenceStartEvent) else "map"
        if event.tag not in (None, "!", _TAG + kind):
            raise _refused(f"the tag {shortened(event.tag)} is not known", event)
        self._check_depth(1, event)
        if event.anchor is not None:
            self.anchors.pop(event.anchor, None)
        self.stack.append(_Open(_CONTAINERS[kind](), event.anchor, self.counted.nodes, self.counted.characters))
        self.counted.add(1, 0, event.start_mark)

    def _close(self, event: Any) -> None:
        done = self.stack.pop()
        if done.anchor is not None:
            nodes, characters = self.counted.nodes - done.nodes, self.counted.characters - done.characters
            self.anchors[done.anchor] = _Anchored(done.value, None, nodes, characters, done.height)
        self._place(done.value, done.height, event)

    def _wants_key(self) -> bool:
        return bool(self.stack) and isinstance(self.stack[-1].value, dict) and self.stack[-1].key is None

    def _take_key(self, key: str, event: Any, *, plain: bool = False) -> None:
        inner = self.stack[-1]
        if plain and key == "<<":
            raise _refused("merge keys (<<) are not part of YAML 1.2", event, "the members written out")
        if key in inner.value:
            raise _refused(f"the key {shortened(key)} is given twice", event)
        inner.key = key

    def _place(self, value: Any, height: int, event: Any) -> None:
        """Put a complete value where it belongs."""
        if not self.stack:
            self.whole = value
            return
        self._check_depth(height, event)
        inner = self.stack[-1]
        inner.height = max(inner.height, height + 1)
        if isinstance(inner.value, list):
            inner.value.append(value)
        elif inner.key is not None:
            inner.value[inner.key], inner.key = value, None

    def _check_depth(self, height: int, event: Any) -> None:
        if len(self.stack) + height > MOST_DEPTH:
            raise _refused("the document nests too deeply", event, f"at most {MOST_DEPTH} levels")


def _value(event: Any) -> Any:
    """What a scalar stands for: by its tag, else by how it is written."""
    text: str = event.value
    if event.tag is None:
        return _resolved(text, event) if event.implicit[0] else text
    match event.tag.removeprefix(_TAG):
        case "str" | "!":
            return text
        case "null" if _NULL.fullmatch(text):
            return None
        case "bool" if _BOOL.fullmatch(text):
            return text.lower() == "true"
        case "int" if _INT.fullmatch(text):
            return _number(text, event)
        case "float" if _FLOAT.fullmatch(text):
            return float(_number(text, event))
        case "null" | "bool" | "int" | "float" as kind:
            raise _refused(f"{shortened(text)} is not of the kind that its tag !!{kind} says", event)
    raise _refused(f"the tag {shortened(event.tag)} is not known", event)


def _resolved(text: str, event: Any) -> Any:
    if _NULL.fullmatch(text):
        return None
    if _BOOL.fullmatch(text):
        return text.lower() == "true"
    if _INT.fullmatch(text) or _FLOAT.fullmatch(text):
        return _number(text, event)
    return text


def _number(text: str, event: Any) -> int | float:
    if len(text) > LONGEST_NUMBER:
        raise _refused(f"a number has {len(text)} characters", event, f"at most {LONGEST_NUMBER}, or a text in quotes")
    if text.startswith(("0o", "0x")):
        return int(text[2:], 8 if text[1] == "o" else 16)
    if _INT.fullmatch(text):
        return int(text)
    number = float(text)
    if not math.isfinite(number):
        raise _refused(f"the number {shortened(text)} is too large", event, "a smaller one, or a text in quotes")
    return number


def _refused(what: str, event: Any, expected: str = "") -> Malformed:
    return Malformed(what, at=_place(event.start_mark), expected=expected)


def _place(mark: Any) -> str:
    return f"line {mark.line + 1}, column {mark.column + 1}" if mark else ""


def _place_of(text: str, position: int) -> str:
    """The place of a byte of the text as UTF-8."""
    before = text.encode(errors="replace")[:position].decode(errors="replace")
    return f"line {before.count(chr(10)) + 1}, column {len(before) - before.rfind(chr(10))}"
