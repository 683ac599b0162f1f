"""What sinks get through the door, over a whole hub: CT-02, CT-14, CT-17, CT-21, CT-22, CT-27."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.test_cloudevents import FOLDER, SAMPLES, as_binary, as_structured, attributes_of, same_data
from tests.doors.cloudevents.worlds import CONSENT, HubDoor, an_event
from tests.flows.test_cloudevents import read
from tests.hub import Hub
from tests.polling import until
from tests.receivers import Answer, Arrival, Receiver
from tidings.client.webhooks import verify

pytestmark = [pytest.mark.hub, pytest.mark.spark]


@pytest.fixture(scope="module")
def door(hub: Hub) -> Iterator[HubDoor]:
    yield HubDoor(hub)


def consenting(answer: Callable[[Arrival], Answer]) -> Callable[[Arrival], Answer]:
    return lambda arrival: CONSENT if arrival.method == "OPTIONS" else answer(arrival)


def posts(receiver: Receiver, count: int, within: float = 60) -> list[Arrival]:
    found = receiver.wait_until(lambda all: sum(each.method == "POST" for each in all) >= count, within)
    return [arrival for arrival in found if arrival.method == "POST"]


@pytest.mark.skipif(not SAMPLES, reason=f"the CloudEvents conformance data is not in {FOLDER}")
@pytest.mark.parametrize("contentmode", ["structured", "binary"])
def test_ct_02_the_minimum_events_arrive_as_they_were_sent(door: HubDoor, contentmode: str) -> None:
    topic = door.topic()
    requests = [form(sample) for sample in SAMPLES for form in (as_binary, as_structured)]
    with Receiver([CONSENT]) as sink:
        door.subscribe(sink.url, topic, contentmode=contentmode, ordering="strict")
        for headers, body in requests:
            sent = {name.decode(): value.decode("latin-1") for name, value in headers}
            assert door.call("POST", f"/topics/{topic}", body, sent).status == 202
        arrivals = posts(sink, len(requests))
    for sample, arrival in zip([sample for sample in SAMPLES for _ in range(2)], arrivals, strict=True):
        event = read(arrival)
        assert attributes_of(sample).items() <= event.attributes.items()
        assert same_data(event.data, sample)
        assert arrival.headers["webhook-request-origin"]


def test_ct_14_and_ct_17_filters_decide_as_their_dialects_say(door: HubDoor) -> None:
    topic = door.topic()
    wanted = {
        "not exact": [{"not": {"exact": {"missing": "x"}}}],
        "prefix": [{"prefix": {"number": "4"}}],
        "all any": [{"all": [{"any": [{"exact": {"id": "1"}}, {"exact": {"id": "2"}}]}, {"suffix": {"type": ".paid"}}]}],
        "sql": [{"sql": "number > 40 AND type LIKE 'order.%'"}],
        "integer": [{"sql": "number + 1"}],
    }
    with Receiver([CONSENT]) as sink:
        for name, filters in wanted.items():
            door.subscribe(f"{sink.url}?{name.replace(' ', '-')}", topic, {"filters": filters})
        door.subscribe(f"{sink.url}?types", topic, {"types": ["order.paid"], "source": "/shop"})
        events = [
            an_event(id="1", number=42),
            an_event(id="2", number=5, type="order.paid"),
            an_event(id="3", type="order.paid"),
        ]
        door.publish_all(topic, [*events[:2], {**events[2], "source": "/other"}])
        arrivals = posts(sink, 7)
    got: dict[str, set[str]] = {}
    for arrival in arrivals:
        got.setdefault(arrival.path.partition("?")[2], set()).add(json.loads(arrival.body)["id"])
    expected = {"not-exact": {"1", "2", "3"}, "prefix": {"1"}, "all-any": {"2"}, "sql": {"1"}, "types": {"2"}}
    assert got == expected, "an integer is not true, so `number + 1` passes nothing"


def test_structured_binary_and_batch_deliveries_have_exact_content_types(door: HubDoor) -> None:
    topic = door.topic()
    with Receiver([CONSENT]) as sink:
        for mode in ("structured", "binary", "batch"):
            door.subscribe(f"{sink.url}?{mode}", topic, contentmode=mode)
        door.publish_all(topic, [an_event(), an_event(id="2", data=None)])
        arrivals = sink.wait_until(lambda all: len(types_in(all)) == 4 and sum(len(one) for one in types_in(all).values()) >= 5)
    types = types_in(arrivals)
    structured = "application/cloudevents+json; charset=utf-8"
    assert types["structured"] == {"1": structured, "2": structured}
    assert types["batch"].keys() == {"1", "2"}
    assert set(types["batch"].values()) == {"application/cloudevents-batch+json; charset=utf-8"}
    assert types["binary"] == {"1": "application/json", "2": structured}, "a request without payload is no webhook (WH-01)"


def types_in(arrivals: list[Arrival]) -> dict[str, dict[str, str]]:
    """Content types by mode and id of the event."""
    found: dict[str, dict[str, str]] = {"none": {}}
    for arrival in arrivals:
        if arrival.method != "POST":
            continue
        mode = arrival.path.partition("?")[2]
        body = json.loads(arrival.body)
        ids = [each["id"] for each in body] if isinstance(body, list) else [arrival.headers.get("ce-id") or body["id"]]
        found.setdefault(mode, {}).update(dict.fromkeys(ids, arrival.headers["content-type"]))
    return found


@pytest.mark.parametrize(
    ("answer", "becomes"),
    [
        (Answer(204), "delivered"),
        (Answer(302, {"location": "http://127.0.0.1:9/"}), "retried"),
        (Answer(410), "disabled"),
        (Answer(415), "dead"),
        (Answer(413), "dead"),
        (Answer(429, {"Retry-After": "600"}), "paused"),
    ],
)
def test_ct_21_the_answer_decides(door: HubDoor, answer: Answer, becomes: str) -> None:
    topic = door.topic()
    with Receiver(consenting(lambda _: answer)) as sink:
        made = door.subscribe(sink.url, topic)
        name = f"cloudevents:{made['id']}"
        door.publish_all(topic, [an_event()])
        posts(sink, 1)

        def state() -> Any:
            return door.hub.call("GET", f"/api/subscriptions/{name}/state").json

        match becomes:
            case "delivered":
                until(lambda: state()["delivered"] == 1)
            case "retried":
                until(lambda: state()["failedAttempts"] == 1 and state()["nextDue"])
            case "disabled":
                until(lambda: state()["state"] == "disabled")
                shown = door.call("GET", f"/subscriptions/{made['id']}").json
                assert (shown["status"], shown["statusreason"]) == ("disabled", "gone")
            case "dead":
                until(lambda: state()["deadLetters"] == 1)
            case "paused":
                until(lambda: state()["pausedUntil"] is not None)
        assert len([arrival for arrival in sink.arrivals if arrival.method == "POST"]) == 1
    door.call("DELETE", f"/subscriptions/{made['id']}")


@pytest.mark.parametrize(("start", "arrive"), [("stop", ["1", "2", "3"]), ("now", ["3"])])
def test_what_was_parked_follows_or_not_when_a_disabled_subscription_goes_on(
    door: HubDoor, start: str, arrive: list[str]
) -> None:
    """WH-26."""
    topic, gone = door.topic(), [True]
    with Receiver(consenting(lambda _: Answer(410 if gone[0] else 204))) as sink:
        made = door.subscribe(sink.url, topic, ordering="strict")
        path = f"/subscriptions/{made['id']}"
        door.publish_all(topic, [an_event(id="1")])
        until(lambda: door.call("GET", path).json["status"] == "disabled")
        door.publish_all(topic, [an_event(id="2")])
        name = f"cloudevents:{made['id']}"
        until(lambda: door.hub.call("GET", f"/api/subscriptions/{name}/state").json["lag"] == 2)
        gone[0] = False
        enabled = door.call("POST", f"{path}/enable", {"from": start})
        assert enabled.status in (200, 202)
        until(lambda: door.call("GET", path).json["status"] == "active")
        door.publish_all(topic, [an_event(id="3")])
        after = posts(sink, 1 + len(arrive))[1:]
    assert [json.loads(arrival.body)["id"] for arrival in after] == arrive


@pytest.mark.parametrize("start", ["first", "time", "now"])
def test_a_subscription_begins_where_it_asks_to(door: HubDoor, start: str) -> None:
    topic = door.topic()
    door.publish_all(topic, [an_event(id=str(number)) for number in range(20)])
    time.sleep(0.05)  # so that the instant lies between two publications
    instant = datetime.now(UTC).isoformat()
    door.publish_all(topic, [an_event(id=str(number)) for number in range(20, 40)])
    chosen = {"first": "first", "time": instant, "now": "now"}[start]
    first = {"first": 0, "time": 20, "now": 40}[start]
    with Receiver([CONSENT]) as sink:
        made = door.subscribe(sink.url, topic, start=chosen, ordering="strict")
        assert made["config"]["start"] == chosen
        for number in range(40, 60):
            door.publish_all(topic, [an_event(id=str(number))])
        arrivals = posts(sink, 60 - first, 120)
        again = {"sink": sink.url, "protocol": "HTTP", "config": made["config"]}
        assert door.call("PUT", f"/subscriptions/{made['id']}", again).status == 200
        door.publish_all(topic, [an_event(id="60")])
        arrivals = posts(sink, 61 - first)
    assert [json.loads(arrival.body)["id"] for arrival in arrivals] == [str(number) for number in range(first, 61)]


def test_ct_22_either_key_verifies_while_both_sign(door: HubDoor) -> None:
    topic = door.topic()
    with Receiver([CONSENT]) as sink:
        made = door.subscribe(sink.url, topic)
        old = made["protocolsettings"]["signing"]["secret"]
        new = door.call("POST", f"/subscriptions/{made['id']}/secret/rotate").json["secret"]
        door.publish_all(topic, [an_event()])
        (arrival,) = posts(sink, 1)
    assert len(arrival.headers["webhook-signature"].split(" ")) == 2
    now = int(arrival.headers["webhook-timestamp"])
    for key in (old, new):
        verify(arrival.body, arrival.headers, [key], now=now)
    public = {**arrival.headers, "webhook-signature": arrival.headers["webhook-signature"][:10]}
    with pytest.raises(Exception, match=r"."):
        verify(arrival.body, public, [new], now=now)


def test_tokens_go_where_they_were_asked_for(door: HubDoor) -> None:
    """WH-07, VT-38's twin."""
    topic = door.topic()
    credential = {"credentialtype": "ACCESSTOKEN", "accesstoken": "t-123", "accesstokenexpiresutc": "2100-01-01T00:00:00Z"}
    with Receiver([CONSENT]) as sink:
        for placement in ("header", "query"):
            door.subscribe(
                sink.url.replace("/in", f"/{placement}"), topic, {"sinkcredential": credential}, tokenplacement=placement
            )
        door.publish_all(topic, [an_event()])
        found = {arrival.path.partition("?")[0]: arrival for arrival in posts(sink, 2)}
    assert found["/header"].headers["authorization"] == "Bearer t-123"
    assert "access_token=t-123" in found["/query"].path and "authorization" not in found["/query"].headers
    assert found["/query"].headers["cache-control"] == "no-store"
    assert "t-123" not in door.hub.log.read_text(errors="replace")


def test_ct_27_a_killed_delivery_loses_nothing(tmp_path: Path) -> None:
    hub = Hub(tmp_path / "data")
    try:
        door = HubDoor(hub.start().wait_ready())
        topic = door.topic()
        with Receiver(consenting(lambda _: Answer(204, delay=0.005))) as sink:
            door.subscribe(sink.url, topic)
            door.publish_all(topic, [an_event(id=str(number)) for number in range(1000)])
            posts(sink, 100, 120)
            assert hub.kill("deliver")
            arrivals = sink.wait_until(lambda all: len(ids_in(all)) == 1000, 120)
        ids = ids_in(arrivals)
        assert ids.keys() == {str(number) for number in range(1000)}
        assert all(len(names) == 1 for names in ids.values()), "what came twice carries the same webhook-id"
    finally:
        hub.stop()


def ids_in(arrivals: list[Arrival]) -> dict[str, set[str]]:
    """The webhook-ids of each event, by its id."""
    found: dict[str, set[str]] = {}
    for arrival in arrivals:
        if arrival.method == "POST":
            found.setdefault(json.loads(arrival.body)["id"], set()).add(arrival.headers["webhook-id"])
    return found
