"""How much work a JSON Schema can ask for: its depth, and its size with every reference followed.

A small document can unfold to billions of subschemas through references to references. That is counted here before it is compiled.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple
from urllib.parse import unquote

from tidings.errors import Malformed

MAX_DEPTH = 64
MAX_VALUES = 100_000
MAX_UNFOLDED = 20_000
MAX_PATTERNS = 500
MAX_PATTERN_CHARACTERS = 2_000
MAX_CHARACTERS_TOGETHER = 100_000
"""Compiling an expression takes longer than its length, so both the longest and all of them together are bounded."""

_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_ANCHORS = ("$anchor", "$dynamicAnchor")
_CHOICES = ("anyOf", "oneOf")
_META_LOOPS = 10
_META_SCHEMAS = ("https://json-schema.org/", "http://json-schema.org/")


class Unfolding(NamedTuple):
    """Subschemas with every reference followed, and how often that leads back to a place it came through."""

    size: int
    loops: int


def unfolded(document: Any) -> Unfolding:
    """The work a schema asks for; Malformed when its depth or its size is beyond the limits."""
    _check_values(document)
    return _Walk(document, dict(_named(document, 1))).measured(document)


def has_choices(document: Any) -> bool:
    """Whether a value may fit one of several subschemas: then telling what failed tells it of each of them."""
    return any(isinstance(node, dict) and any(word in node for word in _CHOICES) for node in _nodes(document))


def _nodes(document: Any) -> Iterator[Any]:
    """Every value in the document, the document itself included."""
    waiting = [document]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += node.values() if isinstance(node, dict) else node if isinstance(node, (list, tuple)) else ()


def _check_values(document: Any) -> None:
    """Raise Malformed where there are too many values, or expressions that take too long to compile."""
    patterns: set[str] = set()
    for number, node in enumerate(_nodes(document), 1):
        if number > MAX_VALUES:
            raise Malformed("the schema is too large", expected=f"at most {MAX_VALUES} values")
        if isinstance(node, dict):
            patterns.update(_patterns(node))
    long = next((one for one in patterns if len(one) > MAX_PATTERN_CHARACTERS), None)
    if long is not None:
        expected = f"at most {MAX_PATTERN_CHARACTERS} characters"
        raise Malformed("a regular expression in the schema is too long", found=long, expected=expected)
    if len(patterns) > MAX_PATTERNS or sum(map(len, patterns)) > MAX_CHARACTERS_TOGETHER:
        expected = f"at most {MAX_PATTERNS}, and {MAX_CHARACTERS_TOGETHER} characters in all"
        raise Malformed("the schema holds too many regular expressions", found=len(patterns), expected=expected)


def _patterns(node: dict[str, Any]) -> Iterator[str]:
    if isinstance(node.get("pattern"), str):
        yield node["pattern"]
    if isinstance(node.get("patternProperties"), dict):
        yield from map(str, node["patternProperties"])


def _named(node: Any, depth: int) -> Iterator[tuple[str, Any]]:
    """Every place of the document that has a name of its own. Also refuses what is too deep, before anyone recurses into it."""
    if depth > MAX_DEPTH:
        raise Malformed("the schema nests too deeply", expected=f"at most {MAX_DEPTH} levels")
    if isinstance(node, dict):
        if depth > 1 and isinstance(node.get("$id"), str):
            raise Malformed("only the top of a schema may have an $id", found=node["$id"])
        yield from ((f"#{node[word]}", node) for word in _ANCHORS if isinstance(node.get(word), str))
    for _, child in _children(node):
        yield from _named(child, depth + 1)


def _children(node: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(node, dict):
        yield from ((str(name), child) for name, child in node.items())
    elif isinstance(node, (list, tuple)):
        yield from ((str(place), child) for place, child in enumerate(node))


def _references(node: Any) -> list[str]:
    return [node[word] for word in _REFERENCES if isinstance(node.get(word), str)] if isinstance(node, dict) else []


class _Walk:
    """Follows references; each place is measured once."""

    def __init__(self, document: Any, targets: dict[str, Any]) -> None:
        self._document = document
        self._targets = targets
        self._known: dict[int, Unfolding] = {}
        self._open: set[int] = set()

    def measured(self, node: Any) -> Unfolding:
        if not isinstance(node, (dict, list, tuple)):
            return Unfolding(0, 0)
        known = self._known.get(id(node))
        if known is not None:
            return known
        self._open.add(id(node))
        parts = [self.measured(child) for _, child in _children(node)] + [self._followed(word) for word in _references(node)]
        self._open.discard(id(node))
        found = Unfolding(1 + sum(part.size for part in parts), sum(part.loops for part in parts))
        if found.size > MAX_UNFOLDED:
            raise Malformed(
                "the schema is too large with its references followed", expected=f"at most {MAX_UNFOLDED} subschemas"
            )
        self._known[id(node)] = found
        return found

    def _followed(self, reference: str) -> Unfolding:
        target = self._target(reference)
        if target is None or id(target) in self._open:
            # Back to where it came through, or to a meta-schema, which is recursive too.
            return Unfolding(0, _META_LOOPS if target is None else 1)
        return self.measured(target)

    def _target(self, reference: str) -> Any:
        if reference in self._targets or reference.startswith(_META_SCHEMAS):
            return self._targets.get(reference)
        if not reference.startswith("#"):
            raise Malformed("a schema may refer only to itself", found=reference, expected="a reference such as #/$defs/name")
        node = self._document
        for step in reference[1:].split("/")[1:]:
            node = _child(node, unquote(step).replace("~1", "/").replace("~0", "~"))
        return node


def _child(node: Any, step: str) -> Any:
    if isinstance(node, dict):
        return node.get(step)
    if isinstance(node, (list, tuple)) and step.isascii() and step.isdigit() and len(step) < 10 and int(step) < len(node):
        return node[int(step)]
    return None
