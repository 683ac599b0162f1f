"""Routing in memory, one core: µs of processor time per event, JSON decoding included. Ratios are made within this run."""

from __future__ import annotations

import gc
import time
import tracemalloc
from collections.abc import Callable, Sequence

from bench import door_filters
from bench.figures import Figure
from bench.workloads import Workload, workload
from tidings.filters import Filter, Router, RouteSpec, RoutingBatch

TOPIC = 1
HEAD = (
    b'{"specversion":"1.0","id":"7c1f-%d","source":"/shop","type":"order.created","time":"2024-01-01T00:00:00Z",'
    b'"datacontenttype":"application/json"}'
)
EVENTS = 10_000
ROUNDS = 5


def figures() -> list[Figure]:
    equality = {n: in_batches(made("equality", n)) for n in (1_000, 10_000)}
    found = [Figure(f"route in batches, equality, {n:,} subscriptions", us, "µs/event") for n, us in equality.items()]
    for kind in ("equality + range", "mixed"):
        found += [
            Figure(
                f"route in batches, {kind}, {n:,}", us := in_batches(made(kind, n)), "µs/event", "equality", us / equality[n]
            )
            for n in (1_000, 10_000)
        ]
    real = Measured(door_filters.parsed(1_000), workload("equality", 10, EVENTS).payloads)
    us = in_batches(real)
    found.append(Figure("route in batches, Horizon and Hermes, 1,000", us, "µs/event", "equality", us / equality[1_000], "≤ 3"))
    for n in (1_000, 10_000):
        us = one_by_one(made("equality + range", n))
        found.append(
            Figure(f"route one by one, equality + range, {n:,}", us, "µs/event", "equality in batches", us / equality[n])
        )
    return [*found, *_growth(), *_changes(), *_building()]


class Measured:
    """A router with its routes, and the events it is measured with."""

    def __init__(self, filters: Sequence[Filter], payloads: Sequence[bytes]) -> None:
        self.routes = [RouteSpec(lane, frozenset([TOPIC]), filter, 0) for lane, filter in enumerate(filters)]
        self.router = Router(self.routes)
        count = len(payloads)
        self.batch = RoutingBatch(range(1, count + 1), [TOPIC] * count, [HEAD % n for n in range(count)], payloads)


def made(kind: str, rules: int) -> Measured:
    chosen: Workload = workload(kind, rules, EVENTS)
    return Measured(chosen.filters(), chosen.payloads)


def in_batches(measured: Measured) -> float:
    """µs per event in one batch of them all."""
    return _best(lambda: measured.router.route(measured.batch)) / len(measured.batch.heads) * 1e6


def one_by_one(measured: Measured) -> float:
    """µs per event, each by itself."""
    batch, route = measured.batch, measured.router.route_one
    events = list(zip(batch.positions, batch.heads, batch.datas, strict=True))

    def each() -> None:
        for position, head, data in events:
            route(position, TOPIC, head, data)

    return _best(each) / len(events) * 1e6


def _best(work: Callable[[], object]) -> float:
    """Seconds of processor time, the least of some rounds; what is compiled once does not count."""
    work()
    gc.collect()
    gc.freeze()
    taken = []
    for _ in range(ROUNDS):
        began = time.process_time()
        work()
        taken.append(time.process_time() - began)
    gc.unfreeze()
    return min(taken)


def _growth() -> list[Figure]:
    few, many = made("flat", 10), made("flat", 100_000)
    rounds = [(in_batches(few), in_batches(many)) for _ in range(3)]  # in turn: the machine's speed drifts
    ten, more = (min(times) for times in zip(*rounds, strict=True))
    return [
        Figure("route in batches, 10 subscriptions", ten, "µs/event"),
        Figure("the same and 99,990 that never match", more, "µs/event", "10 subscriptions", more / ten, "0.7 to 1.3"),
    ]


def _changes() -> list[Figure]:
    measured = made("equality + range", 10_000)
    whole = _timed(lambda: measured.router.route(measured.batch))
    changed = [*measured.routes[1:], RouteSpec(0, frozenset([TOPIC]), measured.routes[1].filter, 0)]
    once = _timed(lambda: measured.router.updated(changed).route(measured.batch))
    routing = in_batches(measured) * len(measured.batch.heads) / 1e6
    return [
        Figure("first batch after building 10,000", whole - routing, "s to build"),
        Figure(
            "first batch after one of 10,000 changed", once - routing, "s to build", "building all", (once - routing) / whole
        ),
    ]


def _timed(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def _building() -> list[Figure]:
    chosen = workload("equality + range", 10_000, 1_000)
    measured = Measured(chosen.filters(), chosen.payloads)
    seconds = _timed(lambda: measured.router.route(measured.batch))
    measured = Measured(chosen.filters(), chosen.payloads)
    gc.collect()
    tracemalloc.start()
    measured.router.route(measured.batch)
    batches = tracemalloc.get_traced_memory()[0]
    measured.router.route_one(1, TOPIC, measured.batch.heads[0], measured.batch.datas[0])
    both = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return [
        Figure("build the index of 10,000, equality + range", seconds, "s", aim="≤ 1"),
        Figure("memory of it, for batches", batches / 1e6, "MB", aim="≤ 30"),
        Figure("memory of it, for batches and single events", both / 1e6, "MB", aim="≤ 30"),
    ]
