"""Documents as text: YAML 1.2 core, several in one text, or JSON (HOR-175).

`NO`, `2024-01-01` and `1:30` stay texts, `010` is ten, keys are always the text that was written. Refused: a key given twice,
values that refer to themselves, and texts that would grow beyond their bounds.
"""

from __future__ import annotations

import re
from typing import Any

import yaml

from tidings.errors import Malformed
from tidings.events import jsontext

MOST_NODES = 100_000
"""Values that one text may stand for: aliases let a few lines mean millions."""

_TAG = "tag:yaml.org,2002:"
_NULL = re.compile(r"(?:~|null|Null|NULL|)\Z")
_BOOL = re.compile(r"(?:true|True|TRUE|false|False|FALSE)\Z")
_INT = re.compile(r"(?:[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+)\Z")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z")

_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_Base):  # type: ignore[misc]
    """PyYAML with the rules of YAML 1.2 core."""

    yaml_implicit_resolvers: dict[str, Any] = {}
    yaml_constructors = dict(_Base.yaml_constructors)

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise yaml.constructor.ConstructorError(None, None, "a key is no text", key.start_mark)
            if key.value in found:
                raise yaml.constructor.ConstructorError(None, None, f"the key {key.value!r} is given twice", key.start_mark)
            found[key.value] = self.construct_object(value, deep=deep)
        return found


def _integer(loader: Any, node: Any) -> int:
    text: str = node.value
    for prefix, radix in (("0o", 8), ("0x", 16)):
        if text.startswith(prefix):
            return int(text[2:], radix)
    return int(text)


_Loader.add_implicit_resolver(f"{_TAG}null", _NULL, ["~", "n", "N", ""])
_Loader.add_implicit_resolver(f"{_TAG}bool", _BOOL, list("tTfF"))
_Loader.add_implicit_resolver(f"{_TAG}int", _INT, list("-+0123456789"))
_Loader.add_implicit_resolver(f"{_TAG}float", _FLOAT, list("-+0123456789."))
_Loader.add_constructor(f"{_TAG}int", _integer)
_Loader.add_constructor(f"{_TAG}float", lambda loader, node: float(node.value))
_Loader.add_constructor(f"{_TAG}map", lambda loader, node: loader.construct_mapping(node, deep=True))
for _other in ("timestamp", "binary", "set", "omap", "pairs", "merge", "value"):
    _Loader.yaml_constructors.pop(f"{_TAG}{_other}", None)


def documents_in(text: bytes, *, json: bool) -> list[Any]:
    """The documents of a text; empty ones are left out. Raises Malformed with the place."""
    found = _json(text) if json else _yaml(text)
    documents = [one for one in found if one is not None]
    _check_size(documents)
    return documents


def _json(text: bytes) -> list[Any]:
    value = jsontext.parse(text)
    return value if isinstance(value, list) else [value]


def _yaml(text: bytes) -> list[Any]:
    try:
        return list(yaml.load_all(text.decode(), _Loader))
    except UnicodeDecodeError as error:
        raise Malformed("the text is not valid UTF-8", at=f"byte {error.start}") from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise Malformed(f"this cannot be read as YAML: {error.problem or error.context}", at=place) from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise Malformed(f"this cannot be read as YAML: {' '.join(str(error).split())[:200]}") from error


def _check_size(documents: list[Any]) -> None:
    left, depth = MOST_NODES, 0
    level: list[Any] = documents
    while level:
        left, depth = left - len(level), depth + 1
        if left < 0 or depth > jsontext.MAX_DEPTH:
            raise Malformed("the documents are too large or too deep", expected=f"at most {MOST_NODES} values")
        level = [child for one in level for child in _children(one)]


def _children(value: Any) -> list[Any]:
    match value:
        case dict():
            return list(value.values())
        case list():
            return value
    return []
