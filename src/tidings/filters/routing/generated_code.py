"""The text of the two functions for single events. It holds no text of users, only numbers of paths.

Names in it: v3 is the value at path 3 and k3 what it is looked up by; `usual` says where the number at the path is that most
ranges look at; `further` collects what few leaves have, `late` what is left to test. What no route of a group needs is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

_DECODED = """\
head = decode_head(raw)
avro = MISSING
if head.avro is MISSING:
  payload = data if data is not None and len(data) <= SMALL and head.type == JSON else payload_of(head, data)
else: avro, payload = opened(head, data)
root = empty if payload is None else decode(payload)"""

_USUAL = """\
usual = v{0} if (v{0}.__class__ is float or v{0}.__class__ is int) and v{0} not in nearest else None"""

_LEAF = """\
if leaf.__class__ is tuple: found += leaf
else:
  cuts, sets, more = leaf
  if usual is None and cuts: usual = piece({0}, v{0}, payload)
  found += sets[bisect(cuts, usual)]"""

_FURTHER = """\
for tables, ranges, tests in further:
  for number, named, other in tables: found += named(keys[number], other)
  for number, cuts, sets in ranges:
    at = known.get(number)
    if at is None: at = known[number] = piece(number, values[number], payload)
    found += sets[bisect(cuts, at)]
  late += tests"""

_LATE = """\
if late:
  if row is None: row = EventRow(({0}), payload, raw, data, schemas)
  tried(late, row, found, problems)"""


class Outer(NamedTuple):
    """A look-up at this path leads to look-ups at its partners; a loop over them where they are too many to write out."""

    number: int
    partners: Sequence[int]
    loop: bool


@dataclass(frozen=True, slots=True)
class Shape:
    """What the functions do. `values` are the expressions of the paths; a fact is (number of its path, whether of texts)."""

    values: Sequence[str]
    keys: frozenset[int]
    confusable: frozenset[int]
    usual: int
    root: bool
    facts: Sequence[tuple[int, bool]]
    tested: Sequence[int]
    outers: Sequence[Outer]
    ranges: bool
    more: bool
    once: bool


def quick(shape: Shape) -> str:
    """`quick(raw, data)`: the routes of an event that is like most. Raises something for one that is not."""
    lines = [*_DECODED.splitlines(), *_taken(shape), "found, row, problems = [*always], None, []", *_body(shape)]
    lines.append("if problems: raise ValueError")
    lines.append("return found" if shape.once else "return found if len(found) < 2 else list({*found})")
    return _function("quick(raw, data)", lines)


def match(shape: Shape) -> str:
    """`match(row, problems)`: the routes of any event."""
    numbers = range(len(shape.values))
    lines = [f"{''.join(f'v{n}, ' for n in numbers)} = row.values"] if shape.values else []
    lines += ["payload = row.payload", *(f"k{n} = looked_up(v{n})" for n in numbers if n in shape.keys)]
    return _function("match(row, problems)", [*lines, "found = []", *_body(shape), "return found"])


def _function(head: str, lines: Iterable[str]) -> str:
    return "\n".join([f"def {head}:", *(f"  {line}" for line in lines)])


def _taken(shape: Shape) -> Iterator[str]:
    for n, value in enumerate(shape.values):
        if n not in shape.keys or n in shape.confusable:
            yield f"v{n} = {value}"
        else:
            yield f"v{n} = k{n} = {value}"
        if n in shape.confusable:
            yield f"k{n} = v{n} if v{n}.__class__ is not bool else looked_up(v{n})"


def _body(shape: Shape) -> Iterator[str]:
    late = shape.more or shape.tested
    if shape.usual >= 0:
        yield from _USUAL.format(shape.usual).splitlines()
    elif shape.ranges:
        yield "usual = None"
    if shape.more or any(outer.loop for outer in shape.outers):
        yield f"keys = ({''.join(f'k{n}, ' if n in shape.keys else 'None, ' for n in range(len(shape.values)))})"
    if shape.more:
        yield f"values = ({''.join(f'v{n}, ' for n in range(len(shape.values)))})"
        yield f"known, further = {{{f'{shape.usual}: usual' if shape.usual >= 0 else ''}}}, []"
    if late:
        yield "late = []"
    if shape.root:
        yield "leaf = root_leaf"
        yield from _leaf(shape, "")
    yield from _facts(shape)
    for outer in shape.outers:
        yield from _outer(shape, outer)
    if shape.more:
        yield from _FURTHER.splitlines()
    if late:
        yield from _LATE.format("".join(f"v{n}, " for n in range(len(shape.values)))).splitlines()


def _facts(shape: Shape) -> Iterator[str]:
    for at, (n, of_texts) in enumerate(shape.facts):
        if of_texts:
            yield f"if v{n}.__class__ is str:"
            yield f"  answer = memo{at}(v{n})"
            yield f"  found += fact{at}(v{n}) if answer is None else answer"
        else:
            yield f"found += fact{at}(v{n})"
    for at, n in enumerate(shape.tested):
        yield f"for entry in may{at}(v{n}): late.append(rest[entry])"


def _leaf(shape: Shape, indent: str) -> Iterator[str]:
    """Collect what `leaf` holds."""
    if not shape.ranges:
        yield f"{indent}found += leaf"
        return
    for line in _LEAF.format(max(0, shape.usual)).splitlines():
        yield indent + line
    if shape.more:
        yield f"{indent}  if more is not None: further.append(more)"


def _outer(shape: Shape, outer: Outer) -> Iterator[str]:
    """Look up one value; where it is named, the inner values and the leaf that it leads to by itself."""
    yield f"at = at{outer.number}(k{outer.number})"
    yield "if at is not None:"
    if outer.loop:
        yield "  others, leaf = at"
    else:
        yield f"  {''.join(f'get{n}, ' for n in outer.partners)}leaf, = at"
    yield "  if leaf is not None:"
    yield from _leaf(shape, "    ")
    if outer.loop:
        yield "  for other, get in others:"
        yield "    leaf = get(keys[other])"
        yield "    if leaf is not None:"
        yield from _leaf(shape, "      ")
        return
    for n in outer.partners:
        yield f"  leaf = get{n}(k{n})"
        yield "  if leaf is not None:"
        yield from _leaf(shape, "    ")
