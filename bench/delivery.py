"""Delivering, beside the bare client posting the same bytes to the same sink: rates, CPU, added time, memory.

Sink, client and workers are processes of their own. The lanes are filled beforehand, so that only delivering is measured.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvloop

from bench.figures import Figure, percentile, table
from bench.lanes import Lanes, Wanted, a_request, settings_of
from bench.processes import cpu_of, share_of
from bench.sinks import Sink, a_sink
from tidings.observe.part_status import read_faces

EVENTS = 20_000
AT_ONCE = 100
BATCH = 100
DEAD = "http://127.0.0.1:9/in"
MIB = 1 << 20
AGAINST = "the bare client"


@dataclass(frozen=True, slots=True)
class Measured:
    """Requests a second at the sink, and CPU seconds for 10,000 of them: of the sending side, and of the sink."""

    rate: float
    cpu: float
    sink_cpu: float
    sink: str


def figures(events: int = EVENTS) -> list[Figure]:
    """Every delivery figure, each against the bare client of the same run."""
    return [*_rates(events), *_light_load(), *_memory(events)]


# ---- rates and CPU

HERMES = "Hermes 2.6 (Java), two cores, nginx:"
"""Measured once on a machine like ours, for orientation: other figures are not made by this bench."""


def _rates(events: int) -> list[Figure]:
    bare = _best(lambda: measure_bare(events))
    one = _best(lambda: measure(events, 1))
    known = measure(events, 1, signed=True)
    ten, two_workers = _best(lambda: measure(events, 10)), _best(lambda: measure(events, 10, workers=2))
    thousand = _best(lambda: measure(events, 1000))
    strict, keyed = measure(events // 10, 1, ordering="strict"), measure(events // 2, 1, ordering="key")
    batched = measure(events, 1, batch_size=BATCH, batch_time=1.0)
    return [
        Figure(f"bare client, {AT_ONCE} at once, to {bare.sink}", bare.rate, "requests/s"),
        Figure("one subscription, one worker", one.rate, "deliveries/s", AGAINST, one.rate / bare.rate, "≥ 0.6"),
        Figure("ten subscriptions, one worker", ten.rate, "deliveries/s", AGAINST, ten.rate / bare.rate),
        _against("ten subscriptions, two workers", two_workers, ten, "one worker", "≥ 1.5 where cores allow"),
        _against("1,000 subscriptions", thousand, one, "one subscription", "≥ 0.7"),
        _against("ordered by key, 100 keys", keyed, one, "one subscription"),
        _against("strictly ordered, each outcome durable first", strict, one, "one subscription"),
        _against(f"batches of {BATCH}, one at a time, events", batched, one, "one subscription"),
        Figure("one subscription, beside Hermes", one.rate, "deliveries/s", f"{HERMES} 17,000 to 24,000"),
        Figure("ten subscriptions, two workers, beside Hermes", two_workers.rate, "deliveries/s", f"{HERMES} 22,000 to 29,000"),
        Figure("CPU for 1,000, beside Hermes", one.cpu / 10, "s", f"{HERMES} 0.06 to 0.08"),
        Figure("bare client, CPU for 10,000", bare.cpu, "s"),
        Figure("the sink, CPU for 10,000", one.sink_cpu, "s", AGAINST, one.sink_cpu / bare.cpu),
        Figure("one subscription with records, CPU for 10,000", one.cpu, "s", AGAINST, one.cpu / bare.cpu),
        Figure("the same with signatures, CPU for 10,000", known.cpu, "s", AGAINST, known.cpu / bare.cpu, "≤ 2.5"),
    ]


def _best(measuring: Callable[[], Measured]) -> Measured:
    return max((measuring() for _ in range(2)), key=lambda one: one.rate)


def _against(name: str, one: Measured, other: Measured, against: str, aim: str = "") -> Figure:
    return Figure(name, one.rate, "/s", against, one.rate / other.rate, aim)


def measure(events: int, subscriptions: int, workers: int = 1, *, signed: bool = False, **wishes: Any) -> Measured:
    """Deliver this many events in all, shared evenly by the subscriptions."""
    with tempfile.TemporaryDirectory(prefix="tidings-bench-") as folder, a_sink() as sink:
        wanted = Wanted(_url(sink), events, subscriptions, signed, tuple(wishes.items()))
        uvloop.run(_prepared(Path(folder), wanted))
        each = BATCH if "batch_size" in wishes else 1
        return _timed(sink, events, each, [["deliver", folder, str(workers), str(n)] for n in range(workers)])


def measure_bare(events: int) -> Measured:
    """The HTTP client alone, with as many requests at once as one subscription has."""
    with a_sink() as sink:
        return _timed(sink, events, 1, [["bare", str(sink.port), str(events)]])


def _url(sink: Sink) -> str:
    return f"http://127.0.0.1:{sink.port}/in"


async def _prepared(folder: Path, wanted: Wanted) -> None:
    lanes = Lanes(folder, wanted)
    await lanes.fill()
    await lanes.close()


def _timed(sink: Sink, events: int, each: int, commands: Sequence[Sequence[str]]) -> Measured:
    """`each`: events that come in one request."""
    with _children(commands) as children:
        # The first tenth warms up: imports, connections, caches, the window that grows with answers.
        began, first = sink.when(events // each // 10)
        used, sink_used = _cpu(children), sink.cpu()
        ended, last = sink.when(events // each)
        used, sink_used = _cpu(children) - used, sink.cpu() - sink_used
    count = each * (last - first)
    return Measured(count / (ended - began), used / count * 10_000, sink_used / count * 10_000, sink.name)


def _cpu(children: Sequence[subprocess.Popen[bytes]]) -> float:
    return sum(cpu_of(child.pid) for child in children)


@contextmanager
def _children(commands: Sequence[Sequence[str]]) -> Iterator[list[subprocess.Popen[bytes]]]:
    children = [subprocess.Popen([sys.executable, "-m", "bench.delivery", *command]) for command in commands]
    try:
        yield children
    finally:
        for child in children:
            child.terminate()
        for child in children:
            child.wait(20)


# ---- added time at light load


def _light_load(events: int = 300, pause: float = 0.02) -> list[Figure]:
    from bench.arrival import TimingReceiver

    receiver = TimingReceiver()
    try:
        bare = uvloop.run(_bare_times(receiver, events, pause))
        with tempfile.TemporaryDirectory(prefix="tidings-bench-") as folder:
            engine = uvloop.run(_engine_times(Path(folder), receiver, events, pause))
    finally:
        receiver.close()
    found = []
    for share, name, aim in ((0.5, "p50", ""), (0.99, "p99", "added ≤ 5 ms")):
        plain, whole = percentile(bare, share) * 1000, percentile(engine, share) * 1000
        found.append(Figure(f"light load, bare client until arrival, {name}", plain, "ms"))
        found.append(Figure(f"light load, from the lane until arrival, {name}", whole, "ms", AGAINST, whole / plain))
        found.append(Figure(f"light load, added by the engine, {name}", whole - plain, "ms", "", None, aim))
    return found


async def _bare_times(receiver: Any, events: int, pause: float) -> list[float]:
    from pyreqwest.client import ClientBuilder

    headers, body = a_request()
    times = []
    async with ClientBuilder().no_proxy().build() as client:
        for _ in range(events):
            receiver.came.clear()
            began = time.monotonic()
            await client.post(receiver.url("/in")).headers(headers).body_bytes(body).build().send()
            await asyncio.to_thread(receiver.came.wait, 10)
            times.append(receiver.at - began)
            await asyncio.sleep(pause)
    return times[events // 10 :]


async def _engine_times(folder: Path, receiver: Any, events: int, pause: float) -> list[float]:
    lanes = Lanes(folder, Wanted(receiver.url("/in"), 0))
    await lanes.fill()
    times = []
    with _children([["deliver", str(folder), "1", "0"]]):
        for n in range(events):
            receiver.came.clear()
            began = await lanes.one_more(n)
            assert await asyncio.to_thread(receiver.came.wait, 30)
            times.append(max(0.0, receiver.at - began))
            await asyncio.sleep(pause)
    await lanes.close()
    return times[events // 10 :]


# ---- memory


def _memory(events: int) -> list[Figure]:
    with a_sink() as sink:
        busy = _resident(Wanted(_url(sink), events, 30), until=lambda: sink.seen() >= events // 30 * 30)
        idle = _resident(Wanted(_url(sink), 0))
        many = _resident(Wanted(_url(sink), 0, 10_000))
        few = _resident(Wanted(DEAD, 20_000))
        parked = _resident(Wanted(DEAD, 100_000))
    return [
        Figure("memory of an idle engine, one subscription", idle, "MiB"),
        Figure("memory after 30 subscriptions had run", busy, "MiB", f"{HERMES} 2,100"),
        Figure("more with 10,000 idle subscriptions", many - idle, "MiB", "", None, "≤ 100"),
        Figure("more with 20,000 events for a dead endpoint", few - idle, "MiB"),
        Figure(
            "more with 100,000 events for a dead endpoint", parked - idle, "MiB", "20,000 events", parked / few, "flat: about 1"
        ),
    ]


def _resident(wanted: Wanted, rest: float = 5.0, until: Callable[[], bool] = lambda: True) -> float:
    """MiB of a worker that has seen all there is, some seconds after."""
    with tempfile.TemporaryDirectory(prefix="tidings-bench-") as folder:
        uvloop.run(_prepared(Path(folder), wanted))
        with _children([["deliver", folder, "1", "0"]]) as (child,):
            while not any(face.ready for face in read_faces(Path(folder) / "run").values()):
                time.sleep(0.05)
            while not until():
                time.sleep(0.1)
            time.sleep(rest)
            return share_of(child.pid) / MIB


# ---- the processes


async def bare(port: int, events: int) -> None:
    """Post the bytes that the hub would post."""
    from pyreqwest.client import ClientBuilder

    headers, body = a_request()
    client = ClientBuilder().no_proxy().http1_lower_case_headers().pool_max_idle_per_host(AT_ONCE).build()
    left = iter(range(events))

    async def post() -> None:
        for _ in left:
            async with client.post(f"http://127.0.0.1:{port}/in").headers(headers).body_bytes(body).build_streamed() as answer:
                assert answer.status == 204

    await asyncio.gather(*(post() for _ in range(AT_ONCE)))
    await asyncio.sleep(60)


async def deliver(folder: Path, workers: int, number: int) -> None:
    """One deliver worker, as `tidings deliver` runs it."""
    import signal

    from tidings.adapters import deliver_adapters
    from tidings.delivery.push.process import run
    from tidings.observe.part_status import PartStatus

    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    board = PartStatus(folder / "run", f"deliver-{number}")
    settings = settings_of(folder, workers)
    await run(settings, stop, board, deliver_adapters(settings, number), number)


def main(words: Sequence[str]) -> None:
    job: Coroutine[Any, Any, None]
    match words:
        case ["bare", port, events]:
            job = bare(int(port), int(events))
        case ["deliver", folder, workers, number]:
            job = deliver(Path(folder), int(workers), int(number))
        case _:
            print(table(figures(int(os.environ.get("BENCH_EVENTS", EVENTS)))))
            return
    uvloop.run(job)


if __name__ == "__main__":
    main(sys.argv[1:])
