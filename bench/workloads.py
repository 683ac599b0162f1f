"""What the benchmarks of routing match: orders as events, and subscriptions of several shapes. Written to files for other engines.

A rule is {"id": n, "all": [{"path": [...], "op": ..., "value": ...}, ...]}. The operators are eq, ge, between (both ends
included), prefix, suffix, anything-but (a list), exists (true or false) and wildcard (one star).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, TypeAlias

from tidings.filters.algebra import (
    AllOf,
    Compare,
    Exists,
    Filter,
    Not,
    OneOf,
    Order,
    Text,
    TextOp,
    all_of,
    literal,
    there_but_not,
)
from tidings.filters.paths import DataPath

Test: TypeAlias = dict[str, Any]
Rule: TypeAlias = list[Test]

STATE, REGION = ("order", "state"), ("order", "region")
SEGMENT, COUNTRY = ("customer", "segment"), ("customer", "country")
CURRENCY, AMOUNT = ("total", "currency"), ("total", "amount")
CHANNEL, SKU, COUPON = ("channel",), ("sku",), ("coupon", "code")
VALUES = {STATE: 8, REGION: 50, SEGMENT: 20, COUNTRY: 100, CURRENCY: 10, CHANNEL: 12, SKU: 5000}
"""How many different values each path has."""


@dataclass(frozen=True, slots=True)
class Workload:
    """Payloads, and the rules to match them with."""

    payloads: list[bytes]
    rules: list[Rule]

    def filters(self) -> list[Filter]:
        return [all_of(*map(_condition, rule)) for rule in self.rules]

    def write(self, folder: Path, name: str) -> tuple[Path, Path]:
        """One event a line, and all rules as JSON."""
        events, rules = folder / f"{name}-events.ndjson", folder / f"{name}-rules.json"
        events.write_bytes(b"\n".join(self.payloads) + b"\n")
        rules.write_text(json.dumps([{"id": n, "all": rule} for n, rule in enumerate(self.rules)]), "utf-8")
        return events, rules


def workload(kind: str, rules: int, events: int = 20_000) -> Workload:
    """One of `KINDS`, the same for the same numbers."""
    chance = Random(events)
    payloads = [_order(n, chance) for n in range(events)]
    make, chance = KINDS[kind], Random(rules)
    if kind != "flat":
        return Workload(payloads, [make(chance) for _ in range(rules)])
    ten = [_equal_and_range(chance) for _ in range(10)]
    return Workload(payloads, ten + [make(chance) for _ in range(rules - 10)])


def _order(n: int, chance: Random) -> bytes:
    order: dict[str, Any] = {
        "id": str(n),
        "order": {"state": _value(STATE, chance), "region": _value(REGION, chance), "number": n},
        "customer": {"segment": _value(SEGMENT, chance), "country": _value(COUNTRY, chance), "name": "x" * 40},
        "total": {"currency": _value(CURRENCY, chance), "amount": chance.randrange(10_000) / 10},
        "channel": _value(CHANNEL, chance),
        "sku": _value(SKU, chance),
        "tags": [f"t{chance.randrange(200)}" for _ in range(3)],
    }
    if chance.random() < 0.5:
        order["coupon"] = {"code": f"c{chance.randrange(100)}"}
    return json.dumps(order | {"note": "y" * 40}, separators=(",", ":")).encode()


def _value(path: tuple[str, ...], chance: Random) -> str:
    return f"v{chance.randrange(VALUES[path])}"


def _test(path: tuple[str, ...], op: str, value: object) -> Test:
    return {"path": list(path), "op": op, "value": value}


def _equal(chance: Random) -> Rule:
    return [_test(path, "eq", _value(path, chance)) for path in chance.sample(list(VALUES), 2)]


def _equal_and_range(chance: Random) -> Rule:
    return _equal(chance) + ([_test(AMOUNT, "ge", chance.randrange(1000))] if chance.random() < 0.5 else [])


def _never(chance: Random) -> Rule:
    return [test | {"value": f"never-{test['value']}"} if test["op"] == "eq" else test for test in _equal_and_range(chance)]


def _mixed(chance: Random) -> Rule:
    low, (one, other) = chance.randrange(1000), chance.sample(list(VALUES), 2)
    first = _test(one, "eq", _value(one, chance))
    shapes: list[tuple[int, Callable[[], Rule]]] = [
        (40, lambda: _equal_and_range(chance)),
        (15, lambda: [_test(SKU, "prefix", f"v{chance.randrange(100, 1000)}")]),
        (10, lambda: [_test(SKU, "suffix", f"{chance.randrange(100, 1000)}")]),
        (10, lambda: [_test(AMOUNT, "between", [low, low + 5])]),
        (10, lambda: [first, _test(other, "anything-but", sorted({_value(other, chance), _value(other, chance)}))]),
        (10, lambda: [first, _test(COUPON, "exists", chance.random() < 0.5)]),
        (5, lambda: [_test(SKU, "wildcard", f"v{chance.randrange(1, 10)}*{chance.randrange(10, 100)}")]),
    ]
    (shape,) = chance.choices([make for _, make in shapes], [weight for weight, _ in shapes])
    return shape()


KINDS: dict[str, Callable[[Random], Rule]] = {
    "equality": _equal,
    "equality + range": _equal_and_range,
    "mixed": _mixed,
    "flat": _never,
}


def _condition(test: Test) -> Filter:
    path, value = DataPath(tuple(test["path"])), test["value"]
    match test["op"]:
        case "eq":
            return Compare(path, Order.EQ, literal(value))
        case "ge":
            return Compare(path, Order.GE, literal(value))
        case "between":
            return AllOf((Compare(path, Order.GE, literal(value[0])), Compare(path, Order.LE, literal(value[1]))))
        case "prefix":
            return Text(path, TextOp.PREFIX, value)
        case "suffix":
            return Text(path, TextOp.SUFFIX, value)
        case "wildcard":
            return Text(path, TextOp.LIKE, value)
        case "anything-but":
            return there_but_not(OneOf(path, tuple(map(literal, value))))
        case "exists":
            return Exists(path) if value else Not(Exists(path))
    raise ValueError(f"unknown operator {test['op']}")
