"""How much a value of a schema may cost: what a decoder without bounds may be given, and what must be walked through first.

A schema of a few bytes can describe values of any size (records of records, each twice), and a payload of a few bytes can hold
any number of items that take no bytes at all. The first is refused with the schema, the second with the payload.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tidings.errors import Malformed
from tidings.events.avro.tree import (
    NAMED,
    AvroArray,
    AvroFixed,
    AvroMap,
    AvroNode,
    AvroPrimitive,
    AvroRecord,
    AvroTree,
    AvroUnion,
    parts_of,
)

MAX_VALUES = 20_000
"""Values in one record, arrays and maps counted as one each."""

MAX_NESTING = 64
"""Records, arrays and maps in one another, in a payload."""

_ENDLESS = 1 << 60
_PER_BYTE = 32
_VISITS = 2_000_000
_SIZES: Mapping[str, int] = {"null": 0, "float": 4, "double": 8}


class Measures:
    """The measures of one schema. Raises Malformed for one whose values would have no end, or too many parts."""

    def __init__(self, tree: AvroTree) -> None:
        self._least: dict[AvroNode, int] = {}
        self._weights: dict[AvroNode, int] = {}
        self._visits = 0
        self._settle_least(tree)
        endless = next((name for name, node in tree.names.items() if self._least.get(node, 0) >= _ENDLESS), None)
        if endless is not None or self.least(tree.root) >= _ENDLESS:
            raise Malformed("a value would hold itself without end", found=endless, expected="a union with null around it")
        self.recursive = _is_recursive(tree.root)
        if self._weight(tree.root, ()) > MAX_VALUES or max(self._weights.values(), default=0) > MAX_VALUES:
            raise Malformed("one value of the schema may have too many parts", expected=f"at most {MAX_VALUES}")
        self._depths: dict[AvroNode, int] = {}
        if self._depth(tree.root, ()) > MAX_NESTING:
            raise Malformed("the types of the schema nest too deeply", expected=f"at most {MAX_NESTING} levels")
        self.tame = not self.recursive and all(self._is_tame(node) for node in _nodes(tree.root))

    def least(self, node: AvroNode) -> int:
        """The fewest bytes that a value of this type takes."""
        self._visits += 1
        if self._visits > _VISITS:
            raise Malformed("the schema refers to itself in too many ways")
        match node:
            case AvroPrimitive(word):
                return _SIZES.get(word, 1)
            case AvroFixed(size=size):
                return size
            case AvroRecord():
                return self._least.get(node, _ENDLESS)
            case AvroUnion(branches):
                return min(_ENDLESS, 1 + min(self.least(branch) for branch in branches))
        return 1

    def _settle_least(self, tree: AvroTree) -> None:
        """From endless downwards, until nothing changes: a record is known once all its fields are."""
        records = [node for node in tree.names.values() if isinstance(node, AvroRecord)]
        changed = True
        while changed:
            changed = False
            for record in reversed(records):
                least = min(_ENDLESS, sum(self.least(field.type) for field in record.fields))
                if least < self._least.get(record, _ENDLESS):
                    self._least[record] = least
                    changed = True

    def _weight(self, node: AvroNode, within: tuple[AvroNode, ...]) -> int:
        """How many values a value of this type has at the most; what it holds of itself is one."""
        if isinstance(node, NAMED):
            if node in within:
                return 1
            known = self._weights.get(node)
            if known is not None:
                return known
            within = (*within, node)
        match node:
            case AvroRecord(fields=fields):
                weight = 1 + sum(self._weight(field.type, within) for field in fields)
            case AvroUnion(branches):
                weight = max(self._weight(branch, within) for branch in branches)
            case AvroArray(inner) | AvroMap(inner):
                self._weight(inner, within)
                weight = 1
            case _:
                weight = 1
        if isinstance(node, NAMED):
            self._weights[node] = min(weight, _ENDLESS)
        return min(weight, _ENDLESS)

    def _depth(self, node: AvroNode, within: tuple[AvroNode, ...]) -> int:
        """How deep records, arrays and maps nest; what a record holds of itself is not looked into again."""
        if node in within:
            return 0
        known = self._depths.get(node)
        if known is not None:
            return known
        inside = max((self._depth(part, (*within, node)) for part in parts_of(node)), default=0)
        depth = inside + isinstance(node, (AvroRecord, AvroArray, AvroMap))
        self._depths[node] = depth
        return depth

    def _is_tame(self, node: AvroNode) -> bool:
        """Whether a payload cannot hold more values than a few for each of its bytes here."""
        match node:
            case AvroArray(items):
                least = self.least(items)
                return least > 0 and self._weight(items, ()) <= _PER_BYTE * least
            case AvroMap(values):
                return self._weight(values, ()) <= _PER_BYTE * (1 + self.least(values))
        return True


def _nodes(root: AvroNode) -> Iterator[AvroNode]:
    """Every node, each once."""
    seen: set[int] = set()
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if id(node) not in seen:
            seen.add(id(node))
            yield node
            waiting += parts_of(node)


def _is_recursive(root: AvroNode) -> bool:
    """Whether some record can hold itself. Every path goes down once: what is done is not looked at again."""
    done: set[int] = set()
    above: set[int] = set()
    waiting: list[tuple[AvroNode, bool]] = [(root, False)]
    while waiting:
        node, leaving = waiting.pop()
        if leaving:
            above.discard(id(node))
            done.add(id(node))
            continue
        if id(node) in above:
            return True
        if id(node) in done:
            continue
        above.add(id(node))
        waiting.append((node, True))
        waiting += [(part, False) for part in parts_of(node)]
    return False
