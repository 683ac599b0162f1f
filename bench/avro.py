"""Avro payloads on one core: µs of processor time per event. Ratios are made within this run."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from typing import Any

from bench.figures import Figure
from bench.filters import Measured, in_batches, made, one_by_one
from bench.workloads import Rule, workload
from tidings.events import json_text
from tidings.events.avro.payloads import SchemaBook
from tidings.events.avro.schema import AvroSchema
from tidings.filters import Filter, Router, RoutingBatch, parse

EVENTS = 10_000
SUBSCRIPTIONS = 1_000
ROUNDS = 5
HEAD = (
    b'{"specversion":"1.0","id":"7c1f-%d","source":"/shop","type":"order.created","time":"2024-01-01T00:00:00Z",'
    b'"datacontenttype":"avro/binary","$avro":"%b"}'
)


def _record(called: str, /, **fields: Any) -> dict[str, Any]:
    return {"type": "record", "name": called, "fields": [{"name": field, "type": type} for field, type in fields.items()]}


_COUPON = {"name": "coupon", "type": ["null", _record("Coupon", code="string")], "default": None}
_METADATA = {"name": "__metadata", "type": ["null", {"type": "map", "values": "string"}], "default": None}
_WHOLE = _record(
    "Order",
    id="string",
    order=_record("Inner", state="string", region="string", number="long"),
    customer=_record("Customer", segment="string", country="string", name="string"),
    total=_record("Total", currency="string", amount="double"),
    channel="string",
    sku="string",
    tags={"type": "array", "items": "string"},
    note="string",
)
SCHEMA = AvroSchema(json.dumps(_WHOLE | {"fields": [_METADATA, *_WHOLE["fields"], _COUPON]}))


def figures() -> list[Figure]:
    chosen = workload("equality", SUBSCRIPTIONS, EVENTS)
    payloads = [SCHEMA.from_json(payload) for payload in chosen.payloads]
    equality, equality_alone = in_batches(made("equality", SUBSCRIPTIONS)), one_by_one(made("equality", SUBSCRIPTIONS))
    avro = _measured([_chain("avropath", rule) for rule in chosen.rules], payloads)
    jsonpath = Measured([_chain("jsonpath", rule) for rule in chosen.rules], chosen.payloads)
    rows = [
        ("route in batches, 1,000 by avropath", in_batches(avro), "equality on JSON", equality),
        ("route in batches, 1,000 by jsonpath", in_batches(jsonpath), "equality on JSON", equality),
        ("route one by one, 1,000 by avropath", one_by_one(avro), "equality on JSON", equality_alone),
    ]
    found = [Figure(name, us, "µs/event", beside, us / than, "≤ 3") for name, us, beside, than in rows]
    return [*found, *_conversions(chosen.payloads, payloads)]


def _chain(kind: str, rule: Rule) -> Filter:
    begin = "$." if kind == "jsonpath" else "."
    filters = [{"type": kind, "path": begin + ".".join(test["path"]), "matcher": test["value"]} for test in rule]
    return parse("hermes", filters)


def _measured(filters: Sequence[Filter], payloads: Sequence[bytes]) -> Measured:
    measured, count = Measured(filters, payloads), len(payloads)
    heads = [HEAD % (n, SCHEMA.fingerprint.encode()) for n in range(count)]
    measured.batch = RoutingBatch(range(1, count + 1), [1] * count, heads, payloads)
    measured.router = Router(measured.routes, schemas=SchemaBook([SCHEMA.text]))
    return measured


def _conversions(texts: Sequence[bytes], payloads: Sequence[bytes]) -> list[Figure]:
    """What a publisher and a subscriber cost beside the check of plain JSON."""
    metadata = {"messageId": "00000000-0000-0000-0000-000000000000", "timestamp": "1700000000000"}
    plain = _each(json_text.parse, texts)
    costs = {
        "check Avro binary": _each(SCHEMA.check, payloads),
        "fill in __metadata": _each(lambda data: SCHEMA.with_metadata(data, metadata), payloads),
        "JSON to Avro": _each(SCHEMA.from_json, texts),
        "Avro to JSON": _each(SCHEMA.json, payloads),
    }
    return [Figure(name, us, "µs/event", "check JSON", us / plain) for name, us in costs.items()]


def _each(work: Callable[[bytes], object], given: Sequence[bytes]) -> float:
    taken = []
    for _ in range(ROUNDS):
        began = time.process_time()
        for one in given:
            work(one)
        taken.append(time.process_time() - began)
    return min(taken) / len(given) * 1e6
