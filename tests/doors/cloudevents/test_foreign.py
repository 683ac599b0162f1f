"""Clients that others wrote, as publishers and sinks: the SDKs for Python and JavaScript, and standardwebhooks (CT-23, CT-26)."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from cloudevents.core.bindings.http import HTTPMessage, from_http_event, to_binary_event, to_structured_event
from cloudevents.core.v1.event import CloudEvent
from standardwebhooks import Webhook

from tests.doors.cloudevents.worlds import CONSENT, HubDoor, an_event
from tests.hub import Hub
from tests.receivers import Answer, Arrival, Receiver

ROOT = Path(__file__).parents[3]
MODULES = ROOT / ".foreign" / "node" / "node_modules"
HERE = Path(__file__).parent / "foreign"

pytestmark = [pytest.mark.hub, pytest.mark.spark]
without_node = pytest.mark.skipif(shutil.which("npm") is None, reason="node and npm are not installed")


@pytest.fixture(scope="module")
def door(hub: Hub) -> Iterator[HubDoor]:
    yield HubDoor(hub)


@pytest.fixture(scope="module")
def node() -> Path:
    """The folder of the JavaScript packages; made by the first who needs it."""
    subprocess.run([ROOT / "scripts" / "foreign", ROOT / ".venv" / "bin" / "python"], check=True, timeout=600)
    return MODULES.parent


def run_node(*command: object, given: str = "") -> list[Any]:
    ran = subprocess.run(["node", *map(str, command)], input=given, capture_output=True, text=True, timeout=240)
    assert ran.returncode == 0, ran.stderr
    return [json.loads(line) for line in ran.stdout.splitlines()]


def deliveries(receiver: Receiver, count: int, within: float = 60) -> list[Arrival]:
    """The deliveries, without the handshake."""
    found = receiver.wait_until(lambda all: sum(each.method == "POST" for each in all) >= count, within)
    return [arrival for arrival in found if arrival.method == "POST"]


def read_by_node(node: Path, arrivals: Sequence[Arrival], secret: str = "") -> list[Any]:
    lines = [json.dumps({"headers": one.headers, "body": one.body.decode(), "secret": secret}) for one in arrivals]
    return run_node(HERE / "sink.mjs", node, given="\n".join(lines) + "\n")


@pytest.mark.parametrize("write", [to_binary_event, to_structured_event])
def test_ct_26_the_python_sdk_publishes_and_receives(door: HubDoor, write: Any) -> None:
    topic = door.topic()
    sent = {
        "id": "1",
        "source": "/py",
        "type": "order.created",
        "subject": 'Euro € 100% "x"',
        "datacontenttype": "application/json",
    }
    message = write(CloudEvent(sent, {"total": 5}))
    with Receiver([CONSENT]) as sink:
        door.subscribe(sink.url, topic)
        assert door.call("POST", f"/topics/{topic}", message.body, dict(message.headers)).status == 202
        (arrival,) = deliveries(sink, 1)
    event = from_http_event(HTTPMessage(headers=arrival.headers, body=arrival.body))
    assert (event.get_data(), event.get_subject(), event.get_id()) == ({"total": 5}, sent["subject"], "1")


@without_node
def test_ct_26_the_javascript_sdk_publishes_and_receives(door: HubDoor, node: Path) -> None:
    topic = door.topic()
    with Receiver([CONSENT]) as plain, Receiver([CONSENT]) as batched, Receiver([CONSENT]) as binary:
        made = door.subscribe(plain.url, topic)
        door.subscribe(batched.url, topic, contentmode="batch", batchsize=10, signing="none")
        door.subscribe(binary.url, topic, contentmode="binary")
        url = f"{door.hub.url}/cloudevents/topics/{topic}"
        run_node(HERE / "publisher.mjs", node, url)
        arrivals = deliveries(plain, 2)
        in_binary = deliveries(binary, 2)
        in_batches = batched.wait_until(lambda all: b"".join(each.body for each in all).count(b'"js-') >= 2, 60)
    secret = made["protocolsettings"]["signing"]["secret"]
    found = read_by_node(node, arrivals, secret)
    assert all(one["verified"] for one in found)
    batches = [each for each in in_batches if each.method == "POST"]
    for read in (found, read_by_node(node, batches), read_by_node(node, in_binary)):
        events = sorted((event for one in read for event in one["events"]), key=lambda event: event["id"])
        assert [event["id"] for event in events] == ["js-binary", "js-structured"]
        for event in events:
            assert (event["subject"], event["ext"], event["data"]) == ("eu-1", "x", {"total": 5, "name": "Ada"})


def test_ct_23_standardwebhooks_verifies_every_delivery_and_retry(door: HubDoor) -> None:
    topic, failed = door.topic(), set()

    def script(arrival: Arrival) -> Answer:
        if arrival.method == "OPTIONS":
            return CONSENT
        number = json.loads(arrival.body)["id"]
        if int(number) % 10 == 0 and number not in failed:
            failed.add(number)
            return Answer(500)
        return Answer(204)

    with Receiver(script) as sink:
        secret = door.subscribe(sink.url, topic)["protocolsettings"]["signing"]["secret"]
        door.publish_all(topic, [an_event(id=str(number)) for number in range(100)])
        arrivals = deliveries(sink, 110)
    ids: dict[str, set[str]] = {}
    for arrival in arrivals:
        Webhook(secret).verify(arrival.body, arrival.headers)
        ids.setdefault(json.loads(arrival.body)["id"], set()).add(arrival.headers["webhook-id"])
    assert (len(ids), {len(one) for one in ids.values()}) == (100, {1}), "an event keeps its webhook-id over its retries"
    assert len({next(iter(one)) for one in ids.values()}) == 100
