"""Figures, traces, undelivered messages, dead letters, retransmission (HER-136 to HER-151, HER-T31 to T36, T44, T49)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from tests.doors.hermes.delivering import HermesWorld, Subscribed, a_hermes_world, retries
from tests.doors.hermes.worlds import refusal
from tests.polling import until
from tests.receivers import Answer, Arrival, Receiver
from tidings.doors.hermes.views.metrics import Totals, health_shown


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HermesWorld]:
    with a_hermes_world(tmp_path_factory.mktemp("hermes")) as world:
        yield world


def trace(sub: Subscribed, message: str) -> list[dict[str, object]]:
    found: list[dict[str, object]] = sub.door.get(f"{sub.path}/events/{message}/trace")
    return found


def statuses(sub: Subscribed, message: str) -> list[object]:
    return [one["status"] for one in trace(sub, message)]


def after_creation(sub: Subscribed) -> datetime:
    """A time between the creation of a subscription and what is published to it next."""
    name = f"hermes%2F{sub.topic}:{sub.path.rpartition('/')[2]}"
    created = datetime.fromisoformat(sub.door.api.call("GET", f"/api/subscriptions/{name}").json["created"])
    since = created + timedelta(milliseconds=10)
    until(lambda: datetime.now(UTC) > since)
    return since


def test_t31_each_form_of_a_date_sends_again(door: HermesWorld) -> None:
    with Receiver() as receiver:
        sub = door.subscribed(receiver, subscriptionPolicy={"messageBackoff": 10})
        since = after_creation(sub)
        sub.send({"n": 1}, {"n": 2})
        sub.done(delivered=2)
        plain = since.strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3]
        forms = [plain.encode(), json.dumps(plain).encode(), json.dumps({"retransmissionDate": f"{plain}Z"}).encode()]
        dry = door.call("PUT", f"{sub.path}/retransmission?dryRun=true", forms[0])
        assert dry.status == 200
        (place,) = dry.json["primary"]
        assert place["topic"] == {"value": sub.topic} and {"partition", "offset"} <= place.keys()
        for count, form in enumerate(forms, 1):
            assert door.call("PUT", f"{sub.path}/retransmission", form).json == dry.json
            sub.done(delivered=2 + 2 * count)
        assert len(receiver.arrivals) == 8 and set(retries(receiver.arrivals)) == {"0"}


@pytest.mark.parametrize("body", [b"yesterday", b"", b"{}", b"5", b'{"retransmissionDate": 5}', b"-6d", b"2015-13-03T13:30:00"])
def test_t31_what_is_no_date_is_refused(door: HermesWorld, body: bytes) -> None:
    with Receiver() as receiver:
        sub = door.subscribed(receiver)
        assert refusal(door.call("PUT", f"{sub.path}/retransmission", body)) == (400, "FORMAT_ERROR")


def test_t32_a_suspended_subscription_sends_again_once_it_is_active(door: HermesWorld) -> None:
    with Receiver() as receiver:
        sub = door.subscribed(receiver)
        since = after_creation(sub)
        sub.send({"n": 1})
        sub.done(delivered=1)
        assert sub.state("SUSPENDED") == 200
        assert door.call("PUT", f"{sub.path}/retransmission", since.isoformat().encode()).status == 200
        assert len(receiver.arrivals) == 1 and sub.metrics()["lag"] == "1"
        sub.send({"n": 2})
        assert sub.state("ACTIVE") == 200
        sub.done(delivered=3)


def test_t32_a_date_in_the_future_skips_what_is_old(door: HermesWorld) -> None:
    with Receiver() as receiver:
        sub = door.subscribed(receiver)
        assert sub.state("SUSPENDED") == 200
        sub.send({"n": 1}, {"n": 2})
        assert door.call("PUT", f"{sub.path}/retransmission", b"2100-01-01T00:00:00").status == 200
        assert sub.state("ACTIVE") == 200
        sub.send({"n": 3})
        sub.done(delivered=1)
        assert [json.loads(one.body) for one in receiver.arrivals] == [{"n": 3}]


def test_t33_undelivered_messages_are_told(door: HermesWorld) -> None:
    with Receiver([Answer(400)]) as receiver:
        sub = door.subscribed(receiver, subscriptionPolicy={"rate": 1000})
        none = door.call("GET", f"{sub.path}/undelivered/last")
        assert none.status == 404 and none.json == {"message": "HTTP 404 Not Found", "code": "OTHER"}
        assert door.get(f"{sub.path}/undelivered") == []
        (sent,) = sub.send(b'{"n": 1}')
        sub.done(discarded=1)
        last = door.get(f"{sub.path}/undelivered/last")
        assert last.pop("timestamp") > 1.7e12 and last.pop("offset") > 0
        assert last == {
            "subscription": sub.path.rpartition("/")[2],
            "topicName": sub.topic,
            "status": "DISCARDED",
            "reason": "Message sending failed with status code:400",
            "message": '{"n": 1}',
            "partition": 0,
            "cluster": "primary",
            "messageId": sent,
        }
        (listed,) = door.get(f"{sub.path}/undelivered")
        assert "message" not in listed and listed["messageId"] == sent


def test_t34_and_t10_a_trace_tells_every_attempt(door: HermesWorld) -> None:
    with Receiver([Answer(hang=True), Answer(200)]) as receiver:
        sub = door.subscribed(receiver, trackingMode="trackingAll", subscriptionPolicy={"requestTimeout": 200})
        (sent,) = sub.send({"n": 1})
        sub.done(delivered=1)
        until(lambda: statuses(sub, sent) == ["INFLIGHT", "SUCCESS", "INFLIGHT", "FAILED", "SUCCESS"])
        lines = trace(sub, sent)
        assert lines[3]["reason"] == "Total timeout elapsed"
        assert all(one["messageId"] == sent and one["topicName"] == sub.topic for one in lines)
        assert "subscription" not in lines[0] and lines[2]["subscription"] == sub.path.rpartition("/")[2]
        times = [one["timestamp"] for one in lines]
        assert times == sorted(times)  # type: ignore[type-var]
        assert trace(sub, "00000000-0000-4000-8000-000000000000") == []


def test_t34_without_tracking_the_last_state_is_known(door: HermesWorld) -> None:
    with Receiver([Answer(500), Answer(200)]) as receiver:
        sub = door.subscribed(receiver, subscriptionPolicy={"messageBackoff": 10})
        (sent,) = sub.send({"n": 1})
        sub.done(delivered=1)
        found = statuses(sub, sent)
        assert found[:2] == ["INFLIGHT", "SUCCESS"] and found[-1] == "SUCCESS" and "FAILED" not in found


def test_t10_a_connection_that_is_refused_is_retried_and_told(door: HermesWorld) -> None:
    sub = door.subscribed("http://127.0.0.1:1/in", subscriptionPolicy={"messageTtl": 1, "messageBackoff": 200})
    sub.send({"n": 1})
    sub.done(discarded=1)
    last = door.get(f"{sub.path}/undelivered/last")
    assert last["reason"] == "no connection could be made"
    (letter,) = door.get(f"{sub.path}/dead-letters")["items"]
    assert letter["attempts"] >= 2


def test_t49_discarded_only_keeps_nothing_else(door: HermesWorld) -> None:
    def script(arrival: Arrival) -> Answer:
        if json.loads(arrival.body)["n"] == 2:
            return Answer(400)
        return Answer(500 if arrival.headers["hermes-retry-count"] == "0" else 200)

    with Receiver(script) as receiver:
        policy = {"messageBackoff": 10}
        sub = door.subscribed(receiver, trackingMode="discardedOnly", subscriptionPolicy=policy)
        retried, discarded = sub.send({"n": 1}, {"n": 2})
        sub.done(delivered=1, discarded=1)
        until(lambda: statuses(sub, discarded)[-1] == "DISCARDED")
        assert "FAILED" not in statuses(sub, retried)


def test_t36_a_dead_letter_is_sent_again_and_goes(door: HermesWorld) -> None:
    with Receiver([Answer(400), Answer(200)]) as receiver:
        sub = door.subscribed(receiver)
        (sent,) = sub.send(b'{"n": 1}')
        sub.done(discarded=1)
        (letter,) = door.get(f"{sub.path}/dead-letters")["items"]
        assert (letter["messageId"], letter["attempts"]) == (sent, 1) and "message" not in letter
        assert door.get(f"{sub.path}/dead-letters/{letter['id']}")["message"] == '{"n": 1}'
        assert refusal(door.call("GET", f"{sub.path}/dead-letters/77777")) == (404, "OTHER")
        assert refusal(door.call("POST", f"{sub.path}/dead-letters/x/retry")) == (404, "OTHER")
        assert door.call("POST", f"{sub.path}/dead-letters/{letter['id']}/retry").status == 202
        until(lambda: door.get(f"{sub.path}/dead-letters")["items"] == [])
        receiver.wait_for(2, 20)
        assert retries(receiver.arrivals) == ["0", "0"]


def test_dead_letters_are_chosen_all_or_by_id_and_dropped(door: HermesWorld) -> None:
    with Receiver([Answer(400)] * 3 + [Answer(200)]) as receiver:
        sub = door.subscribed(receiver)
        sub.send({"n": 1}, {"n": 2}, {"n": 3})
        sub.done(discarded=3)
        letters = f"{sub.path}/dead-letters"
        page = door.get(f"{letters}?limit=2")
        rest = door.get(f"{letters}?limit=2&cursor={page['cursor']}")
        ids = [one["id"] for one in (*page["items"], *rest["items"])]
        assert len(set(ids)) == 3
        assert door.get(f"{letters}?from=2100-01-01T00:00:00Z")["items"] == []
        assert door.call("DELETE", f"{letters}/{ids[0]}").status == 204
        until(lambda: len(door.get(letters)["items"]) == 2)
        assert refusal(door.call("POST", f"{letters}/retry", {})) == (400, "VALIDATION_ERROR")
        assert refusal(door.call("POST", f"{letters}/retry", {"ids": [ids[0]]})) == (404, "OTHER")
        assert door.call("POST", f"{letters}/retry", {"ids": [ids[1]]}).status == 202
        until(lambda: len(door.get(letters)["items"]) == 1)
        assert door.call("POST", f"{letters}/retry", {"all": True}).status == 202
        until(lambda: door.get(letters)["items"] == [])


def test_t35_figures_have_every_field_of_the_page(door: HermesWorld) -> None:
    with Receiver() as receiver:
        sub = door.subscribed(receiver)
        sub.send({"n": 1})
        sub.done(delivered=1)
        found = sub.metrics()
    numbers = {"delivered", "discarded", "inflight", "volume"}
    texts = {"timeouts", "otherErrors", "codes2xx", "codes4xx", "codes5xx", "retries", "lag", "rate", "throughput", "batchRate"}
    assert numbers | texts <= found.keys()
    assert all(isinstance(found[name], int) for name in numbers) and all(isinstance(found[name], str) for name in texts)
    assert (found["volume"], found["rate"], found["rateMode"]) == (len('{"n": 1}'), "400.0", "normal")
    assert door.get(f"{sub.path}/metrics/persistent") == {"delivered": 1, "discarded": 0, "volume": 8}


def test_rates_are_those_of_the_last_minute(door: HermesWorld) -> None:
    with Receiver() as receiver:
        sub = door.subscribed(receiver)
        sub.metrics()
        sub.send(*({"n": n} for n in range(20)))
        sub.done(delivered=20)
        until(lambda: float(sub.metrics()["codes2xx"]) > 0)
        assert float(sub.metrics()["throughput"]) > 0


def health(rates: Totals, lag: int = 0, topic: float = 100.0, **more: bool) -> tuple[str, list[str]]:
    shown = health_shown(rates, lag, topic, **{"suspended": False, "retries_client_errors": False, **more})
    return shown["status"], [one["code"] for one in shown["problems"]]


def test_t44_health_names_what_is_wrong() -> None:
    assert health(Totals(delivered=10)) == ("HEALTHY", [])
    assert health(Totals(), topic=0) == ("NO_DATA", [])
    assert health(Totals(), lag=60_001) == ("UNHEALTHY", ["LAGGING"])
    assert health(Totals(), lag=60_000) == ("HEALTHY", [])
    assert health(Totals(failed=10, other=6)) == ("UNHEALTHY", ["UNREACHABLE"])
    assert health(Totals(failed=10, other=5, timeouts=1)) == ("HEALTHY", [])
    assert health(Totals(failed=10, timeouts=2, server=2)) == ("UNHEALTHY", ["TIMING_OUT", "MALFUNCTIONING"])
    assert health(Totals(failed=10, client=10)) == ("HEALTHY", [])
    malformed = ("UNHEALTHY", ["RECEIVING_MALFORMED_MESSAGES"])
    assert health(Totals(failed=10, client=10), retries_client_errors=True) == malformed
    assert health(Totals(failed=2, other=2)) == ("HEALTHY", [])
    assert health(Totals(failed=10, other=10), lag=1_000_000, suspended=True) == ("HEALTHY", [])


def test_health_is_told(door: HermesWorld) -> None:
    with Receiver() as receiver:
        sub = door.subscribed(receiver)
        assert door.get(f"{sub.path}/health") == {"status": "NO_DATA", "problems": []}
        sub.send({"n": 1})
        sub.done(delivered=1)
        assert door.get(f"{sub.path}/health") == {"status": "HEALTHY", "problems": []}


def test_t44_all_views_agree_about_what_was_discarded(door: HermesWorld) -> None:
    with Receiver([Answer(404)]) as receiver:
        sub = door.subscribed(receiver, subscriptionPolicy={"rate": 1000})
        ids = sub.send(*({"n": n} for n in range(5)))
        sub.done(discarded=5)
        undelivered = door.get(f"{sub.path}/undelivered")
        letters = door.get(f"{sub.path}/dead-letters")["items"]
        assert sorted(one["messageId"] for one in undelivered) == sorted(one["messageId"] for one in letters) == sorted(ids)
        assert {statuses(sub, one)[-1] for one in ids} == {"DISCARDED"}
