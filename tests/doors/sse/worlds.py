"""The api part and a real deliver process over one data folder; the test routes events into lanes by hand."""

from __future__ import annotations

import http.client
import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.api_process import ApiProcess, an_api
from tests.delivery.worlds import start
from tests.hub import Answer, Hub
from tests.polling import until
from tidings.delivery.push.sqlite import SqliteDeliveryReader
from tidings.lanes.sink import Routed
from tidings.lanes.sqlite.block import packed
from tidings.lanes.sqlite.writer import SqliteLanesWriter
from tidings.log.cursor import position_of
from tidings.log.port import Limit
from tidings.log.position import LaneNumber, Offset, embedded
from tidings.log.sqlite.reader import SqliteLogReader
from tidings.observe.part_status import read_faces
from tidings.registry.store import open_reader


@dataclass
class Streaming:
    """What a test of streams works with."""

    api: ApiProcess
    lanes: SqliteLanesWriter
    deliver: subprocess.Popen[bytes] | None = None
    delivery: SqliteDeliveryReader = field(init=False)

    def __post_init__(self) -> None:
        self.delivery = SqliteDeliveryReader(self.api.data)

    def start_deliver(self, **environ: str) -> None:
        self.deliver = started = start(self.api.data, **environ)
        until(lambda: self._face_of(started.pid) or started.poll() is not None)
        assert started.poll() is None

    def _face_of(self, pid: int) -> bool:
        face = read_faces(self.api.data / "run").get("deliver")
        return face is not None and face.ready and face.pid == pid

    def kill_deliver(self) -> None:
        assert self.deliver is not None
        self.deliver.kill()
        self.deliver.wait()

    def subscribe(self, name: str, kind: str = "sse", **body: Any) -> LaneNumber:
        retention = body.pop("retention", None)
        wanted = {"topic": "orders", "delivery": {"kind": kind, **body}, "retention": retention}
        answer = self.api.call("PUT", f"/api/subscriptions/{name}", wanted)
        assert answer.status in (200, 201), answer.body
        return self.lane(name)

    def publish(self, count: int, *lanes: LaneNumber, first: int = 1, filler: bytes = b"") -> list[Offset]:
        """Publish `{"n": first}` and so on, and route them into these lanes."""
        lines = b"\n".join(b'{"n": %d, "filler": "%b"}' % (n, filler) for n in range(first, first + count))
        answer = self.api.publish("orders", lines, "application/x-ndjson")
        assert answer.status == 202, answer.body
        begin, end = (position_of(answer.json[edge]).offset for edge in ("first", "last"))
        offsets = [Offset(offset) for offset in range(begin, end + 1)]
        blocks = [packed(lane, offsets) for lane in sorted(lanes)]
        self.lanes.write(Routed(runs=blocks, scanned=embedded(offsets[-1])))
        return offsets

    def route(self, *lanes: LaneNumber) -> list[Offset]:
        """Route what was published since the last time into these lanes."""
        log = SqliteLogReader(self.api.data)
        ends = log.ends()
        offsets = [entry.position.offset for entry in log.scan(self.lanes.routed(), ends, Limit()).entries]
        log.close()
        blocks = [packed(lane, offsets) for lane in sorted(lanes)] if offsets else []
        self.lanes.write(Routed(runs=blocks, scanned=ends))
        return offsets

    def lane(self, name: str) -> LaneNumber:
        """The lane of a subscription, by the last part of its name."""
        with open_reader(self.api.data) as registry:
            return next(one.lane for full, one in registry.snapshot().subscriptions.items() if full.name == name)

    def open_streams(self) -> float:
        """How many streams the deliver process holds open, as of its last second."""
        face = read_faces(self.api.data / "run")["deliver"]
        return sum(series.value for series in face.series if series.name == "tidings_open_streams")

    def delivered(self, lane: LaneNumber, upto: int) -> None:
        """Go on when everything of the lane up to there is final."""
        until(lambda: self.delivery.lane(lane).low_water.position.offset >= upto)


@contextmanager
def streaming(data: Path, **flags: Any) -> Iterator[Streaming]:
    with an_api(data, **flags) as api:
        api.call("PUT", "/api/topics/orders", {})
        world = Streaming(api, SqliteLanesWriter(data))
        world.start_deliver()
        try:
            yield world
        finally:
            world.kill_deliver()
            world.lanes.close()
            world.delivery.close()


class Reader:
    """A client of a stream, in plain sockets: it reads only when it is asked to."""

    def __init__(self, api: ApiProcess | Hub, path: str, timeout: float = 80.0, **headers: str) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", api.port, timeout=timeout)
        self._connection.request("GET", path, headers={name.replace("_", "-"): value for name, value in headers.items()})
        self._response: http.client.HTTPResponse | None = None

    @property
    def response(self) -> http.client.HTTPResponse:
        if self._response is None:
            self._response = self._connection.getresponse()
        return self._response

    def lines(self) -> Iterator[bytes]:
        """The lines as they come, until the stream ends."""
        while line := self.response.readline():
            yield line

    def frames(self, count: int) -> list[tuple[str, Any]]:
        """The next so many events: id and data. Fewer when the stream ends."""
        found: list[tuple[str, Any]] = []
        given = ""
        while len(found) < count and (line := self.response.readline()):
            if line.startswith(b"id: "):
                given = line[4:].strip().decode()
            elif line.startswith(b"data: "):
                found.append((given, json.loads(line[6:])))
        return found

    def numbers(self, count: int) -> list[int]:
        """What the next so many events say."""
        return [event["data"]["n"] for _, event in self.frames(count)]

    def answer(self) -> Answer:
        """The whole answer, when it has ended."""
        response = self.response
        return Answer(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())

    def close(self) -> None:
        if self._response is not None:
            self._response.close()
        self._connection.close()
