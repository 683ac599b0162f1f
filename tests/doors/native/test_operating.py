from __future__ import annotations

import html.parser
import os
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.api_process import ApiProcess, an_api
from tests.polling import until
from tidings.backup.sqlite import leap_ahead
from tidings.cli.root import app as cli
from tidings.errors import DataFolderUnusable, Misconfigured, PortInUse
from tidings.lanes.sink import Routed
from tidings.lanes.sqlite.writer import SqliteLanesWriter
from tidings.log.position import embedded
from tidings.log.sqlite.reader import SqliteLogReader
from tidings.observe.part_status import PartStatus
from tidings.pipeline.routing_figures import RoutingFigures

ROUTES = {
    "/api/topics": {"get"},
    "/api/topics/{name}": {"get", "put", "patch", "delete"},
    "/api/topics/{name}/events": {"get", "post", "options"},
    "/api/topics/{name}/explain": {"post"},
    "/api/subscriptions": {"get"},
    "/api/subscriptions/{name}": {"get", "put", "patch", "delete"},
    "/api/subscriptions/{name}/secret/rotate": {"post"},
    "/api/webhooks/confirm/{secret}": {"get", "post"},
    "/api/.well-known/jwks.json": {"get"},
    "/api/providers": {"get"},
    "/api/providers/{name}": {"get", "put", "patch", "delete"},
    "/api/subscriptions/{name}/state": {"get", "put"},
    "/api/subscriptions/{name}/refill": {"post"},
    "/api/subscriptions/{name}/rewind": {"post"},
    "/api/subscriptions/{name}/redeliver": {"post"},
    "/api/subscriptions/{name}/breaker/close": {"post"},
    "/api/subscriptions/{name}/dead-letters/{number}": {"get", "delete"},
    "/api/subscriptions/{name}/dead-letters/{number}/retry": {"post"},
    "/api/subscriptions/{name}/dead-letters/retry": {"post"},
    "/api/subscriptions/{name}/policy": {"get", "put", "patch"},
    "/api/subscriptions/{name}/deliveries": {"get"},
    "/api/subscriptions/{name}/deliveries/{delivery}": {"get"},
    "/api/deliveries/{delivery}": {"get"},
    "/api/topics/{name}/events/{cursor}/trace": {"get"},
    "/api/topics/{name}/find": {"get"},
    "/api/topics/{name}/schema-versions": {"get"},
    "/api/subscriptions/{name}/dead-letters": {"get", "delete"},
    "/api/exposures": {"get"},
    "/api/exposures/{topic}": {"get", "put", "patch", "delete"},
    "/api/approvals": {"get"},
    "/api/approvals/{subscription}/{topic}": {"put"},
    "/api/asides": {"get"},
    "/api/changes": {"get"},
    "/api/filters/test": {"post"},
    "/api/filters/convert": {"post"},
    "/api/apply": {"post"},
    "/api/feeds/{feed}/cursorsets": {"get"},
    "/api/feeds/{feed}/cursorsets/{name}": {"delete"},
    "/api/feeds/{topic}/partitions": {"post"},
    "/api/subscriptions/{name}/stream": {"get", "delete"},
    "/api/status": {"get"},
    "/health/live": {"get"},
    "/health/ready": {"get"},
    "/metrics": {"get"},
}


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiProcess]:
    with an_api(tmp_path_factory.mktemp("operating")) as api:
        yield api


def test_the_openapi_document_lists_every_route(api: ApiProcess) -> None:
    paths = api.call("GET", "/api/openapi.json").json["paths"]
    assert {path: set(methods) for path, methods in paths.items()} == ROUTES


class _Links(html.parser.HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.links: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.links |= {value or "" for name, value in attrs if name in ("href", "src")}


def test_the_api_page_shows_every_route_and_needs_nothing_from_elsewhere(api: ApiProcess) -> None:
    answer = api.call("GET", "/api/docs")
    assert (answer.status, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    text = answer.body.decode()
    assert all(f"<code>{path}</code>" in text for path in ROUTES)
    page = _Links()
    page.feed(text)
    assert page.links == {"openapi.json"}
    assert "script" not in page.tags and not re.search(r"@import|url\(", text)


def test_health_tells_which_part_is_not_ready_and_why(tmp_path: Path) -> None:
    with an_api(tmp_path) as api:
        answer = api.call("GET", "/health/ready")
        assert answer.status == 503
        assert answer.json["parts"]["api"] == {"ready": True, "reason": ""}
        assert answer.json["parts"]["pipeline"] == {"ready": False, "reason": "it has not started yet"}
        boards = [PartStatus(tmp_path / "run", part) for part in ("pipeline", "deliver")]
        for board in boards:
            board.ready()
            board.flush()
        assert api.call("GET", "/health/ready").status == 200
        assert api.call("GET", "/api/status").json["ready"] is True
        boards[0].not_ready("Spark is starting")
        boards[0].flush()
        answer = api.call("GET", "/health/ready")
        assert (answer.status, answer.json["parts"]["pipeline"]["reason"]) == (503, "Spark is starting")


def own_view(api: ApiProcess) -> Any:
    return api.call("GET", "/health/ready").json["parts"]["api"]


def test_a_disk_without_room_makes_the_api_not_ready_until_there_is_some(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with an_api(tmp_path) as api:
        api.call("PUT", "/api/topics/orders", {})
        assert own_view(api) == {"ready": True, "reason": ""}
        with monkeypatch.context() as full:
            full.setattr(os, "statvfs", lambda folder: SimpleNamespace(f_bavail=10, f_frsize=4096))
            until(lambda: not own_view(api)["ready"])
            health, status = api.call("GET", "/health/ready"), api.call("GET", "/api/status").json
            assert health.status == 503
            assert "the disk is almost full" in health.json["parts"]["api"]["reason"]
            assert (status["ready"], status["parts"]["api"]) == (False, health.json["parts"]["api"])
            assert 'tidings_part_ready{part="api"} 0' in api.call("GET", "/metrics").body.decode()
            shown = CliRunner().invoke(cli, ["status"], env={"TIDINGS_URL": f"http://127.0.0.1:{api.port}"})
            assert shown.exit_code == 1 and "the disk is almost full" in shown.stdout
            assert api.publish("orders", {}).status == 503
        until(lambda: own_view(api)["ready"])
        assert api.publish("orders", {}).status == 202


def test_the_lag_of_routing_counts_what_no_one_has_routed(api: ApiProcess) -> None:
    api.call("PUT", "/api/topics/orders", {})
    for _ in range(3):
        api.publish("orders", {})
    status = api.call("GET", "/api/status").json
    assert status["lag"]["routing"]["events"] == 3
    assert status["lag"]["routing"]["seconds"] > 0
    assert (status["end"], status["routed"], status["topics"]) == ("0-3", "0-0", 1)


def test_the_lag_of_routing_counts_neither_commands_nor_the_leap_of_a_restore(tmp_path: Path) -> None:
    def lag(api: ApiProcess) -> int:
        return int(api.call("GET", "/api/status").json["lag"]["routing"]["events"])

    with an_api(tmp_path) as api:
        api.call("PUT", "/api/topics/orders", {})
        api.call("PUT", "/api/subscriptions/billing", {"topic": "orders", "to": "http://127.0.0.1:9/in"})
        api.publish("orders", b"1\n2\n3\n", "application/x-ndjson")
        api.call("PUT", "/api/subscriptions/billing/state", {"state": "suspended"})
        assert (lag(api), api.call("GET", "/api/status").json["end"]) == (3, "0-4")
    leap_ahead(tmp_path / "log.db")
    with an_api(tmp_path) as api:
        assert lag(api) == 3
        api.publish("orders", {})
        assert lag(api) == 4
        with closing(SqliteLanesWriter(tmp_path)) as lanes:
            lanes.write(Routed((), embedded(2)))
            assert lag(api) == 2
            lanes.write(Routed((), SqliteLogReader(tmp_path).ends()))
        assert lag(api) == 0


def test_metrics_count_what_was_published_and_refused(tmp_path: Path) -> None:
    with an_api(tmp_path) as api:
        api.call("PUT", "/api/topics/orders", {})
        api.publish("orders", b"1\n2\n", "application/x-ndjson")
        api.publish("nowhere", {})
        wanted = ('tidings_published_total{topic="orders"} 2', 'tidings_publish_refused_total{code="not-found"} 1')
        until(lambda: all(line in api.call("GET", "/metrics").body.decode() for line in wanted))
        text = api.call("GET", "/metrics").body.decode()
        assert "tidings_publish_seconds_count 1" in text
        assert 'tidings_part_ready{part="api"} 1' in text


def test_a_port_in_use_is_named_with_the_way_out(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(PortInUse, match=rf"127\.0\.0\.1:{port}.*--port"), an_api(tmp_path, server={"port": port}):
            pass


def test_another_address_needs_token_checks(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match="open access"), an_api(tmp_path, server={"host": "0.0.0.0"}):
        pass


def test_a_second_api_on_the_same_folder_is_refused(api: ApiProcess) -> None:
    with pytest.raises(DataFolderUnusable), an_api(api.data):
        pass


def test_stopping_lets_a_waiting_reader_go_at_once(tmp_path: Path) -> None:
    with an_api(tmp_path) as api:
        api.call("PUT", "/api/topics/orders", {})
        found: list[object] = []
        reader = threading.Thread(target=lambda: found.extend(api.lines("orders", after="_last", wait=60)))
        reader.start()
        while not _waits(api):
            pass
    reader.join(10)
    assert not reader.is_alive()
    assert found == [{"cursor": "0-0"}]


def _waits(api: ApiProcess) -> bool:
    """Whether the reader's request has reached the hub: then its connection is there beside this one."""
    return api.call("GET", "/health/live").status == 200 and _connections(api.port) > 0


def _connections(port: int) -> int:
    wanted = f":{port:04X}"
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return sum(row[1].endswith(wanted) and row[3] == "01" for row in rows)


def test_the_api_process_never_imports_spark() -> None:
    code = "import sys, tidings.app, tidings.doors.native.application; print('pyspark' in sys.modules, 'pandas' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split() == [
        "False",
        "False",
    ]


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [
        ("POST", "/api/topics/orders", "GET, PUT, PATCH, DELETE"),
        ("DELETE", "/api/topics", "GET"),
        ("PUT", "/metrics", "GET"),
        ("PUT", "/horizon/rover/v1/x/apply", "POST"),
    ],
)
def test_a_method_that_is_not_allowed_is_told_which_ones_are(tmp_path: Path, method: str, path: str, allow: str) -> None:
    with an_api(tmp_path) as api:
        answer = api.call(method, path)
        assert (answer.status, answer.headers["allow"]) == (405, allow)


def test_the_status_says_whether_routing_is_live_or_catches_up_and_how_long_a_step_takes(api: ApiProcess) -> None:
    def routing() -> Any:
        return api.call("GET", "/api/status").json["routing"]

    assert routing() == {"mode": "down", "stepSeconds": None}
    board = PartStatus(api.data / "run", "pipeline")
    figures = RoutingFigures(board)
    board.ready()
    figures.catching_up()
    assert routing() == {"mode": "catching up", "stepSeconds": None}
    figures.step(0.004)
    figures.live()
    assert routing() == {"mode": "live", "stepSeconds": 0.004}
    text = api.call("GET", "/metrics").body.decode()
    assert "tidings_routing_live 1.0" in text and "tidings_routing_step_seconds 0.004" in text
    board.not_ready("Spark ended")
    board.flush()
    assert routing()["mode"] == "down"


def test_the_status_command_shows_the_mode_of_routing(api: ApiProcess) -> None:
    board = PartStatus(api.data / "run", "pipeline")
    RoutingFigures(board).step(0.004)
    RoutingFigures(board).live()
    shown = CliRunner().invoke(cli, ["status", "--url", f"http://127.0.0.1:{api.port}"])
    assert "live, 4.0 ms a step" in shown.stdout
