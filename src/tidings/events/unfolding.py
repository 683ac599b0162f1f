"""How much work a JSON Schema can ask for: its depth, and its size with every reference followed.

A small document can unfold to billions of subschemas through references to references. That is counted here before it is compiled.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple
from urllib.parse import unquote

from tidings.errors import Malformed

MAX_DEPTH = 64
MAX_UNFOLDED = 20_000

_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_ANCHORS = ("$anchor", "$dynamicAnchor")
_META_LOOPS = 10
_META_SCHEMAS = ("https://json-schema.org/", "http://json-schema.org/")


class Unfolding(NamedTuple):
    """Subschemas with every reference followed, and how often that leads back to a place it came through."""

    size: int
    loops: int


def unfolded(document: Any) -> Unfolding:
    """The work a schema asks for; Malformed when its depth or its size is beyond the limits."""
    return _Walk(document, dict(_named(document, 1))).measured(document)


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
            node = dict(_children(node)).get(unquote(step).replace("~1", "/").replace("~0", "~"))
        return node
