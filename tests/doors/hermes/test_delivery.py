"""What subscribers get, and what their answers lead to (HER-73 to HER-102, HER-T07 to T15, T26, T41, T46, T47)."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from email.utils import formatdate

import pytest

from tests.delivery.push.test_policy import waits
from tests.doors.hermes.delivering import HermesWorld, a_hermes_world, retries
from tests.doors.hermes.worlds import a_subscription
from tests.polling import until
from tests.receivers import Answer, Receiver
from tidings import config
from tidings.delivery.push.policy.policy import policy_of
from tidings.doors.hermes.documents.subscriptions import core_subscription, subscription_request
from tidings.doors.hermes.names import topic_name
from tidings.registry.model import Push, Topic


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HermesWorld]:
    with a_hermes_world(tmp_path_factory.mktemp("hermes"), hermes={"propagate_headers": True}) as world:
        yield world


def test_t47_a_message_goes_out_as_hermes_sends_it(door: HermesWorld) -> None:
    with Receiver() as receiver:
        headers = [{"name": "SOME_HEADER", "value": "ABC"}, {"name": "Hermes-Message-Id", "value": "mine"}]
        sub = door.subscribed(receiver, "/in?x=1", headers=headers, subscriptionIdentityHeadersEnabled=True)
        (sent,) = sub.send(b'{ "a": 1.0 }', trace_id="t1", hermes_retry_count="77")
        (arrival,) = receiver.wait_for(1, 20)
    assert (arrival.method, arrival.path, arrival.body) == ("POST", "/in?x=1", b'{ "a": 1.0 }')
    wanted = {
        "content-type": "application/json",
        "keep-alive": "true",
        "hermes-message-id": sent,
        "hermes-retry-count": "0",
        "hermes-topic-name": sub.topic,
        "hermes-subscription-name": sub.path.rpartition("/")[2],
        "some_header": "ABC",
        "trace-id": "t1",
    }
    assert wanted.items() <= arrival.headers.items()
    assert "authorization" not in arrival.headers


def test_t47_without_the_flag_nobody_is_named_and_a_publishers_header_wins(door: HermesWorld) -> None:
    with Receiver() as receiver:
        sub = door.subscribed(receiver, headers=[{"name": "Trace-Id", "value": "theirs"}])
        sub.send({}, trace_id="t2")
        receiver.wait_for(1, 20)
        sub.send({}, other="x")
        first, second = receiver.wait_for(2, 20)
    assert (first.headers["trace-id"], second.headers["trace-id"]) == ("t2", "theirs")
    assert not {"hermes-topic-name", "hermes-subscription-name"} & first.headers.keys()


def test_a_header_of_the_hub_is_told_at_creation(door: HermesWorld) -> None:
    topic = door.topic("shop.warned")
    body = {
        "topicName": topic,
        "name": "w",
        "endpoint": "http://x",
        "description": "x",
        "owner": {"source": "Plaintext", "id": "x"},
    }
    answer = door.call("POST", f"/topics/{topic}/subscriptions", {**body, "headers": [{"name": "Content-Type", "value": "x"}]})
    assert answer.status == 201 and "Content-Type" in answer.headers["tidings-warning"]


@pytest.mark.parametrize("status", [200, 201, 299])
def test_t07_any_2xx_is_delivered(door: HermesWorld, status: int) -> None:
    with Receiver([Answer(status)]) as receiver:
        sub = door.subscribed(receiver)
        sub.send({"n": 1})
        sub.done(delivered=1)
        assert len(receiver.arrivals) == 1


def test_t08_a_client_error_is_retried_only_if_asked(door: HermesWorld) -> None:
    with Receiver([Answer(400)]) as receiver:
        sub = door.subscribed(receiver)
        sub.send({"n": 1})
        sub.done(discarded=1)
        assert len(receiver.arrivals) == 1
    with Receiver([Answer(400)]) as receiver:
        policy = {"retryClientErrors": True, "messageTtl": 1, "messageBackoff": 200}
        sub = door.subscribed(receiver, subscriptionPolicy=policy)
        sub.send({"n": 1})
        sub.done(discarded=1)
        assert retries(receiver.arrivals) == [str(n) for n in range(len(receiver.arrivals))] and len(receiver.arrivals) >= 2


def test_t09_a_retry_says_its_number(door: HermesWorld) -> None:
    with Receiver([Answer(500), Answer(500), Answer(200)]) as receiver:
        sub = door.subscribed(receiver, subscriptionPolicy={"messageBackoff": 10})
        (sent,) = sub.send({"n": 1})
        sub.done(delivered=1)
        assert retries(receiver.arrivals) == ["0", "1", "2"]
        assert {one.headers["hermes-message-id"] for one in receiver.arrivals} == {sent}


@pytest.mark.parametrize("status", [429, 503])
def test_t11_back_pressure_is_waited_for(door: HermesWorld, status: int) -> None:
    waits = {429: "2", 503: formatdate(time.time() + 4, usegmt=True)}
    with Receiver([Answer(status, {"retry-after": waits[status]}), Answer(200)]) as receiver:
        sub = door.subscribed(receiver)
        sub.send({"n": 1})
        first, second = receiver.wait_for(2, 20)
        assert second.at - first.at >= 1
        sub.done(delivered=1)
        assert float(sub.metrics()["rate"]) == 400


def test_t12_back_pressure_without_a_time_is_a_plain_retry(door: HermesWorld) -> None:
    with Receiver([Answer(429), Answer(429, {"retry-after": "soon"}), Answer(200)]) as receiver:
        sub = door.subscribed(receiver, subscriptionPolicy={"messageBackoff": 100})
        sub.send({"n": 1})
        sub.done(delivered=1)
        assert retries(receiver.arrivals) == ["0", "1", "2"]


def test_t13_back_pressure_beyond_the_time_to_live_discards_at_once(door: HermesWorld) -> None:
    with Receiver([Answer(429, {"retry-after": "60"})]) as receiver:
        sub = door.subscribed(receiver, subscriptionPolicy={"messageTtl": 30})
        sub.send({"n": 1})
        sub.done(discarded=1)
        assert len(receiver.arrivals) == 1


def test_t14_the_wait_grows_up_to_its_limit() -> None:
    given = {"messageBackoff": 100, "backoffMultiplier": 2, "backoffMaxIntervalInSec": 1}
    request = subscription_request(a_subscription(subscriptionPolicy=given))
    push = core_subscription(request, None, Topic(name=topic_name("shop.orders"))).delivery
    assert isinstance(push, Push)
    assert waits(policy_of(push, config.load(environ={}).push), 6) == [0.1, 0.2, 0.4, 0.8, 1.0, 1.0]


def test_t15_no_time_to_live_is_one_attempt(door: HermesWorld) -> None:
    with Receiver([Answer(500)]) as receiver:
        sub = door.subscribed(receiver, subscriptionPolicy={"messageTtl": 0})
        sub.send({"n": 1})
        sub.done(discarded=1)
        assert len(receiver.arrivals) == 1


def test_redirects_are_not_followed(door: HermesWorld) -> None:
    with Receiver([Answer(302, {"location": "/other"}), Answer(200)]) as receiver:
        sub = door.subscribed(receiver, "/in", subscriptionPolicy={"messageBackoff": 10})
        sub.send({"n": 1})
        sub.done(delivered=1)
        assert [one.path for one in receiver.arrivals] == ["/in", "/in"]


def test_t25_basic_goes_as_a_header(door: HermesWorld) -> None:
    with Receiver() as receiver:
        sub = door.subscribed(receiver.url.replace("http://", "http://user:pass@"))
        sub.send({"n": 1})
        (arrival,) = receiver.wait_for(1, 20)
        assert arrival.headers["authorization"] == "Basic dXNlcjpwYXNz"


def test_t05_and_t06_a_suspended_subscription_sends_nothing_and_loses_nothing(door: HermesWorld) -> None:
    with Receiver([Answer(500)] * 1 + [Answer(200)]) as receiver:
        sub = door.subscribed(receiver, subscriptionPolicy={"messageBackoff": 1500, "messageTtl": 2})
        sub.send({"n": 1})
        receiver.wait_for(1, 20)
        assert sub.state("SUSPENDED", "POST") == 200
        until(lambda: door.get(f"{sub.path}/state") == "SUSPENDED")
        sub.send({"n": 2})
        assert door.call("PUT", f"{sub.path}/state", b"SUSPENDED").status == 400
        time.sleep(2.5)
        assert len(receiver.arrivals) == 1
        assert sub.state("ACTIVE") == 200
        sub.done(delivered=2)
        assert sorted(json.loads(one.body)["n"] for one in receiver.arrivals) == [1, 1, 2]


def test_t41_the_first_attempt_waits_for_the_sending_delay(door: HermesWorld) -> None:
    with Receiver() as receiver:
        sub = door.subscribed(receiver, subscriptionPolicy={"sendingDelay": 500})
        before = time.monotonic()
        sub.send({"n": 1})
        receiver.wait_for(1, 20)
        assert time.monotonic() - before >= 0.5


def test_t41_and_t35_only_so_many_are_in_flight(door: HermesWorld) -> None:
    with Receiver([Answer(hang=True)]) as receiver:
        sub = door.subscribed(receiver, subscriptionPolicy={"inflightSize": 2, "requestTimeout": 5000})
        sub.send(*({"n": n} for n in range(5)))
        receiver.wait_for(2, 20)
        until(lambda: sub.metrics()["inflight"] == 2)
        assert len(receiver.arrivals) == 2 and sub.metrics()["lag"] == "5"
        door.call("DELETE", sub.path)


def test_t46_variables_of_an_endpoint_come_from_the_message(door: HermesWorld) -> None:
    with Receiver() as receiver:
        sub = door.subscribed(receiver, "/{a.b}?t={list[1]}", subscriptionPolicy={"messageTtl": 0})
        sub.send({"a": {"b": "x/../y?z"}, "list": [1, 2.5]})
        (arrival,) = receiver.wait_for(1, 20)
        assert arrival.path == "/x%2F..%2Fy%3Fz?t=2.5"
        sub.send({"a": {}})
        sub.done(delivered=1, discarded=1)
        assert "variable" in door.get(f"{sub.path}/undelivered/last")["reason"]


def test_t46_a_variable_leads_nowhere_that_is_not_allowed(door: HermesWorld) -> None:
    sub = door.subscribed("http://{host}:9/", subscriptionPolicy={"messageTtl": 0})
    (private, smuggled) = sub.send({"host": "10.0.0.1"}, {"host": "user@10.0.0.1"})
    sub.done(discarded=2)
    reasons = {one["messageId"]: one["reason"] for one in door.get(f"{sub.path}/undelivered")}
    assert reasons == {
        private: "the address may not be reached from this hub",
        smuggled: "the callback's address cannot be used",
    }


def test_t37_batches_go_by_size_and_by_time(door: HermesWorld) -> None:
    with Receiver() as receiver:
        sub = door.subscribed(receiver, deliveryType="BATCH", subscriptionPolicy={"batchSize": 3, "batchTime": 4000})
        ids = sub.send(*({"n": n} for n in range(7)), trace_id="t")
        arrivals = receiver.wait_for(3, 20)
        batches = [json.loads(one.body) for one in arrivals]
    assert [len(batch) for batch in batches] == [3, 3, 1]
    found = [element for batch in batches for element in batch]
    assert [one["message"] for one in found] == [{"n": n} for n in range(7)]
    assert [one["metadata"]["id"] for one in found] == ids
    assert all(one["_w"] is True and one["metadata"]["externalMetadata"]["trace-id"] == "t" for one in found)
    assert all(abs(one["metadata"]["timestamp"] / 1000 - time.time()) < 60 for one in found)
    first = arrivals[0].headers
    assert first["content-type"] == "application/json" and "hermes-message-id" not in first
    assert first["hermes-retry-count"] == "0" and len(first["hermes-batch-id"]) == 36


def test_t38_a_plain_batch_shows_its_credentials_and_keeps_its_id(door: HermesWorld) -> None:
    with Receiver([Answer(503, {"retry-after": "3"}), Answer(200)]) as receiver:
        policy = {"batchSize": 2, "batchTime": 1000, "batchFormat": "plain"}
        endpoint = receiver.url.replace("http://", "http://user:pass@")
        sub = door.subscribed(endpoint, deliveryType="BATCH", subscriptionPolicy=policy)
        sub.send({"n": 1}, {"n": 2})
        first, second = receiver.wait_for(2, 20)
    assert json.loads(second.body) == [{"n": 1}, {"n": 2}] and second.body == first.body
    assert second.headers["authorization"] == "Basic dXNlcjpwYXNz"
    assert first.headers["hermes-batch-id"] == second.headers["hermes-batch-id"]
    assert (first.headers["hermes-retry-count"], second.headers["hermes-retry-count"]) == ("0", "1")
    assert second.at - first.at >= 1


def test_t39_a_batch_in_retry_can_be_suspended(door: HermesWorld) -> None:
    with Receiver([Answer(500), Answer(200)]) as receiver:
        policy = {"batchSize": 2, "batchTime": 100, "messageBackoff": 4000, "messageTtl": 60}
        sub = door.subscribed(receiver, deliveryType="BATCH", subscriptionPolicy=policy)
        sub.send({"n": 1}, {"n": 2})
        receiver.wait_for(1, 20)
        assert sub.state("SUSPENDED") == 200
        time.sleep(5)
        assert len(receiver.arrivals) == 1
        sub.state("ACTIVE")
        sub.done(delivered=2)
        assert [one["message"] for one in json.loads(receiver.arrivals[-1].body)] == [{"n": 1}, {"n": 2}]


def test_a_message_too_large_for_a_batch_is_discarded(door: HermesWorld) -> None:
    with Receiver() as receiver:
        policy = {"batchSize": 2, "batchTime": 100, "batchVolume": 500}
        sub = door.subscribed(receiver, deliveryType="BATCH", subscriptionPolicy=policy)
        sub.send({"n": 1}, {"large": "x" * 600}, {"n": 2})
        sub.done(delivered=2, discarded=1)
        assert door.get(f"{sub.path}/undelivered/last")["reason"] == "too large"


def test_t26_and_t28_a_401_brings_a_token(door: HermesWorld) -> None:
    form: list[bytes] = []

    def provide(arrival: object) -> Answer:
        form.append(arrival.body)  # type: ignore[attr-defined]
        return Answer(200, {"content-type": "application/json"}, b'{"access_token": "tok"}')

    def check(arrival: object) -> Answer:
        shown = arrival.headers.get("authorization")  # type: ignore[attr-defined]
        return Answer(200 if shown == "Bearer tok" else 401)

    with Receiver(provide) as provider, Receiver(check) as receiver:
        member = {"name": "iris", "tokenEndpoint": provider.url, "clientId": "hub", "clientSecret": "s3"}
        door.made("/oauth/providers", member)
        policy = {
            "grantType": "password",
            "providerName": "iris",
            "username": "u",
            "password": "p",
            "scope": "all",
        }
        sub = door.subscribed(receiver, oAuthPolicy=policy)
        sub.send({"n": 1}, {"n": 2})
        sub.done(delivered=2)
    fields = dict(pair.split("=") for pair in form[0].decode().split("&"))
    assert fields == {
        "grant_type": "password",
        "client_id": "hub",
        "client_secret": "s3",
        "scope": "all",
        "username": "u",
        "password": "p",
    }
    assert len(form) == 1
