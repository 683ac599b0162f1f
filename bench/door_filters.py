"""Filters as people write them at the doors: Horizon's documents and Hermes' chains, with nested paths, arrays, or/not, regex."""

from __future__ import annotations

from random import Random
from typing import Any

from bench.workloads import CHANNEL, COUNTRY, REGION, SEGMENT, SKU, STATE, VALUES
from tidings.filters import Filter, parse


def written(count: int) -> list[tuple[str, Any]]:
    """Dialect and filter, the same for the same number."""
    chance = Random(count)
    return [_written(chance) for _ in range(count)]


def parsed(count: int) -> list[Filter]:
    return [parse(dialect, raw) for dialect, raw in written(count)]


def _written(chance: Random) -> tuple[str, Any]:
    makers = (_horizon, _horizon_either, _horizon_array, _hermes, _hermes_regex)
    (make,) = chance.choices(makers, (35, 20, 15, 20, 10))
    return make(chance)


def _horizon(chance: Random) -> tuple[str, Any]:
    parts = [_eq(SKU, chance), _eq(chance.choice((STATE, REGION)), chance)]
    if chance.random() < 0.5:
        parts.append({"ge": {"field": "$.total.amount", "value": chance.randrange(1000)}})
    return "horizon", {"and": parts}


def _horizon_either(chance: Random) -> tuple[str, Any]:
    countries = [_value(COUNTRY, chance) for _ in range(3)]
    either = {"or": [{"in": {"field": "$.customer.country", "value": countries}}, _eq(SKU, chance)]}
    return "horizon", {
        "and": [either, {"nin": {"field": "$.order.state", "value": [_value(STATE, chance)]}}, _eq(REGION, chance)]
    }


def _horizon_array(chance: Random) -> tuple[str, Any]:
    tag = {"ct": {"field": "$.tags", "value": f"t{chance.randrange(200)}"}}
    return "horizon", {"and": [tag, {"rx": {"field": "$.sku", "value": f"v{chance.randrange(1, 50)}.*"}}]}


def _hermes(chance: Random) -> tuple[str, Any]:
    return "hermes", [_jsonpath(SKU, _value(SKU, chance)), _jsonpath(CHANNEL, _value(CHANNEL, chance))]


def _hermes_regex(chance: Random) -> tuple[str, Any]:
    return "hermes", [
        _jsonpath(SEGMENT, _value(SEGMENT, chance)),
        _jsonpath(SKU, f"v[{chance.randrange(5)}-9]{chance.randrange(100)}.?"),
    ]


def _eq(path: tuple[str, ...], chance: Random) -> Any:
    return {"eq": {"field": "$." + ".".join(path), "value": _value(path, chance)}}


def _jsonpath(path: tuple[str, ...], matcher: str) -> Any:
    return {"type": "jsonpath", "path": "$." + ".".join(path), "matcher": matcher}


def _value(path: tuple[str, ...], chance: Random) -> str:
    return f"v{chance.randrange(VALUES[path])}"
