"""The CloudEvents conformance data through a running hub: published over raw HTTP, arriving at a callback (CT-01, CT-02)."""

from __future__ import annotations

import json
import socket
from typing import Any

import pytest

from tests.conformance.test_cloudevents import (
    FEATURE,
    FOLDER,
    OLD_SAMPLES,
    SAMPLES,
    all_scenarios,
    as_binary,
    as_structured,
    attributes_of,
    same_data,
)
from tests.flows.test_publish_to_callback import a_topic, subscribed
from tests.hub import Hub
from tests.receivers import Receiver
from tidings.events.http_binding import decode
from tidings.events.limits import Limits

pytestmark = [
    pytest.mark.hub,
    pytest.mark.spark,
    pytest.mark.skipif(not FEATURE.exists(), reason=f"the CloudEvents conformance data is not in {FOLDER}"),
]

LIMITS = Limits(max_event_bytes=65536, batch_events=1000, batch_bytes=4 << 20, transport_headers=frozenset())


def send(hub: Hub, topic: str, headers: list[tuple[bytes, bytes]], body: bytes) -> int:
    """The request byte for byte, on a socket of its own; the status of the answer."""
    kept = [(name, value) for name, value in headers if name not in (b"host", b"content-length", b"connection")]
    lines = [b"POST /api/topics/%s/events HTTP/1.1" % topic.encode(), b"Host: 127.0.0.1", b"Content-Length: %d" % len(body)]
    lines += [name + b": " + value for name, value in kept] + [b"Connection: close"]
    with socket.create_connection(("127.0.0.1", hub.port), timeout=120) as wire:
        wire.sendall(b"\r\n".join(lines) + b"\r\n\r\n" + body)
        answer = b"".join(iter(lambda: wire.recv(65536), b""))
    return int(answer.split(b" ", 2)[1])


def read(arrival: Any) -> Any:
    headers = [(name.encode(), value.encode("latin-1")) for name, value in arrival.headers.items()]
    return decode(headers, arrival.body, LIMITS)[0]


@pytest.mark.parametrize("mode", ["structured", "binary"])
def test_every_http_scenario_and_every_sample_arrives_as_it_was_sent(hub: Hub, mode: str) -> None:
    requests = [(list(each.headers), each.body) for each in all_scenarios()]
    for sample in SAMPLES:
        requests += [(list(headers), body) for headers, body in (as_binary(sample), as_structured(sample))]
    with Receiver() as receiver:
        topic = a_topic(hub)
        subscribed(hub, topic, receiver, to=None, delivery={"url": receiver.url, "mode": mode, "inflight": 1})
        assert [send(hub, topic, headers, body) for headers, body in requests] == [202] * len(requests)
        events = [read(arrival) for arrival in receiver.wait_for(len(requests), 60)]

    listed, sampled = events[: len(all_scenarios())], events[len(all_scenarios()) :]
    for scenario, event in zip(all_scenarios(), listed, strict=True):
        assert event.attributes == scenario.attributes
        assert json.loads(event.data) == json.loads(scenario.data)
    for sample, event in zip([sample for sample in SAMPLES for _ in range(2)], sampled, strict=True):
        assert attributes_of(sample).items() <= event.attributes.items()
        assert same_data(event.data, sample)


def test_events_of_version_0_3_are_refused(hub: Hub) -> None:
    topic = a_topic(hub)
    for sample in OLD_SAMPLES:
        for headers, body in (as_binary(sample), as_structured(sample)):
            assert send(hub, topic, list(headers), body) == 400
