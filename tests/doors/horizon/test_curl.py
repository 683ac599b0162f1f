"""curl as provider and consumer of a running hub, with `tidings listen` as the callback."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.doors.horizon.flows import World
from tests.doors.horizon.worlds import a_horizon_event, a_rover, an_entry
from tests.hub import Hub

pytestmark = [
    pytest.mark.hub,
    pytest.mark.spark,
    pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed"),
]
FRAMES, PLAIN = "text/event-stream", "application/stream+json"


def curl(*words: str) -> str:
    ran = subprocess.run(["curl", "--silent", "--show-error", "--no-buffer", *words], capture_output=True, timeout=480)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.decode()


def status(*words: str) -> str:
    return curl("--output", os.devnull, "--write-out", "%{http_code}", *words)


def applied(world: World, folder: Path, *documents: dict[str, Any]) -> list[Any]:
    """The parts of documents in a YAML file, sent as curl sends files by itself."""
    file = folder / "rover.yaml"
    file.write_text(yaml.safe_dump_all(documents))
    told = curl("--data-binary", f"@{file}", f"{world.api.url}/horizon/rover/v1/{world.environment}/apply")
    return [part for one in json.loads(told)["results"] for part in one["parts"]]


def publish(world: World, n: int) -> None:
    body = json.dumps(a_horizon_event(data={"n": n, "secret": 1}))
    address = f"{world.api.url}/horizon/v1/{world.environment}/events"
    assert status("--header", "Content-Type: application/json", "--data", body, address) == "201"


@pytest.fixture(scope="module")
def world(hub: Hub) -> World:
    return World(hub)


@pytest.fixture(scope="module")
def stream(world: World, tmp_path_factory: pytest.TempPathFactory) -> str:
    entry = an_entry(deliveryType="server_sent_event", callback=None)
    (part,) = applied(world, tmp_path_factory.mktemp("stream"), a_rover("reader", subscriptions=[entry]))
    assert part["state"] == "ACTIVE"
    return str(part["sseUrl"]).replace("http://localhost", "http://127.0.0.1")


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        ([], PLAIN),
        (["--header", "Accept:"], PLAIN),
        (["--header", f"Accept: {PLAIN}"], PLAIN),
        (["--header", f"Accept: {FRAMES}"], FRAMES),
        (["--header", f"Accept: {FRAMES}, */*"], PLAIN),
        (["--http1.0", "--header", f"Accept: {FRAMES}"], FRAMES),
    ],
)
def test_curl_streams_in_the_form_it_asks_for(world: World, stream: str, accept: list[str], kind: str) -> None:
    publish(world, 7)
    told = curl(*accept, "--write-out", "%{content_type}", f"{stream}?maxNumber=1")
    *lines, content_type = told.split("\n")
    assert content_type == kind
    data = [line.removeprefix("data: ") for line in lines if line and not line.startswith("id: ")]
    assert [json.loads(line)["data"]["n"] for line in data] == [7]
    assert any(line.startswith("id: ") for line in lines) == (kind == FRAMES)


def test_curl_goes_on_after_the_last_event(world: World, stream: str) -> None:
    for n in (1, 2, 3):
        publish(world, n)
    first = curl("--header", f"Accept: {FRAMES}", f"{stream}?maxNumber=3")
    ids = [line.removeprefix("id: ") for line in first.splitlines() if line.startswith("id: ")]
    again = curl("--header", f"Last-Event-ID: {ids[0]}", f"{stream}?maxNumber=2")
    assert [json.loads(line)["data"]["n"] for line in again.splitlines()] == [2, 3]


def test_curl_asks_for_health(world: World) -> None:
    for path in ("events", "sse"):
        head = curl("--head", f"{world.api.url}/horizon/v1/{world.environment}/{path}").lower()
        assert head.startswith("http/1.1 204") and "x-health-check-timestamp: " in head


def test_a_callback_gets_what_curl_published_filtered_and_with_a_good_token(world: World, tmp_path: Path) -> None:
    client = ["--horizon", "hub--team--bill", "--publisher", "hub--team--shop", "--url", world.api.url]
    command = [sys.executable, "-m", "tidings.cli", "listen", "--port", "0", "--count", "1", "--json", *client]
    listener = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert listener.stderr is not None
        url = listener.stderr.readline().split()[2].rstrip(",")
        trigger = {"advancedSelectionFilter": {"ge": {"field": "$.n", "value": 100}}, "responseFilter": ["n"]}
        subscribing = a_rover("bill", subscriptions=[an_entry(callback=f"{url}/in", trigger=trigger)])
        (part,) = applied(world, tmp_path, subscribing)
        publish(world, 99)
        publish(world, 100)
        out, _ = listener.communicate(timeout=480)
    finally:
        listener.kill()
    told = json.loads(out)
    assert told["event"]["data"] == {"n": 100}
    assert told["headers"]["x-subscription-id"] == part["subscriptionId"]
    assert told["signature"] == "token right", told
