"""From an event to the sink, in a running hub: matching, copies, order, retries (VT-13 to VT-17, VT-21 to VT-28, VT-38)."""

from __future__ import annotations

import json
import random
import uuid
from collections.abc import Iterator, Sequence
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from tests.doors.vng.worlds import EVENT, VngDoor, an_event, consenting, posts
from tests.hub import Hub
from tests.polling import until
from tests.receivers import Answer as SinkAnswer
from tests.receivers import Arrival, Receiver

pytestmark = [pytest.mark.hub, pytest.mark.spark]


class World(VngDoor):
    """Domains of its own in a shared hub: names begin with a word of this world."""

    def __init__(self, hub: Hub) -> None:
        super().__init__(hub)
        self.word = f"t{uuid.uuid4().hex[:10]}"
        self.attributes = ("vertrouwelijkheid", "leeg", "nl.vng.Zaaktype")

    def name(self, domain: str) -> str:
        return f"{self.word}.{domain}"

    def domains(self, *names: str) -> None:
        for name in names:
            self.domain(self.name(name), *self.attributes)

    def send(self, domain: str, **members: Any) -> dict[str, Any]:
        event = an_event(domain=self.name(domain), **members)
        answer = self.publish(event)
        assert answer.status == 200, answer.body
        return event

    def here(self, **criteria: Any) -> dict[str, Any]:
        """Criteria that match in this world only."""
        filters = [{"prefix": {"domain": f"{self.word}."}}, *criteria.pop("filters", ())]
        return {**criteria, "filters": filters}


@pytest.fixture
def world(hub: Hub) -> World:
    return World(hub)


def received(sink: Receiver) -> list[dict[str, Any]]:
    return [json.loads(one.body) for one in posts(sink)]


def ids(events: Sequence[dict[str, Any]]) -> list[str]:
    return [one["id"] for one in events]


def arrive(sink: Receiver, events: Sequence[dict[str, Any]], within: float = 60) -> list[dict[str, Any]]:
    """What arrived, once the last of these events has: a lane keeps its order, so nothing before it is still to come."""
    last = events[-1]["id"]
    until(lambda: last in ids(received(sink)), lambda: f"{ids(received(sink))} has no {last}", within=within)
    return received(sink)


def test_vt13_and_vt14_criteria_of_subscriptions(world: World) -> None:
    world.domains("personen", "zaken")
    with consenting() as everything, consenting() as some, consenting() as never:
        world.subscribed(everything.url, **world.here())
        world.subscribed(some.url, domain=world.name("personen"), types=["persoon_verhuisd", "persoon_overleden"])
        world.subscribed(never.url, **world.here(filters=[{"exact": {"type": "a"}}, {"exact": {"type": "b"}}]))
        sent = [
            world.send("personen", type="persoon_verhuisd"),
            world.send("personen", type="persoon_geboren"),
            world.send("zaken", type="persoon_verhuisd"),
            world.send("personen", type="Persoon_overleden"),
            world.send("personen", type="persoon_overleden"),
        ]
        assert ids(arrive(everything, sent)) == ids(sent)
        assert ids(arrive(some, sent)) == [sent[0]["id"], sent[4]["id"]]
        assert received(never) == []


def example(world: World) -> list[dict[str, Any]]:
    """The example of the text, with the domains of this world."""
    zaken, documenten = world.name("zaken"), world.name("documenten")
    gewijzigd, gesloten = ({"exact": {"type": f"{zaken}.{word}"}} for word in ("status_gewijzigd", "zaak_gesloten"))
    in_zaken = {"all": [{"exact": {"domain": zaken}}, {"any": [gewijzigd, gesloten]}]}
    return [{"any": [in_zaken, {"exact": {"domain": documenten, "vertrouwelijkheid": "normaal"}}]}]


def test_vt15_the_example_of_the_text_over_eight_events(world: World) -> None:
    world.domains("zaken", "documenten")
    zaken = world.name("zaken")
    with consenting() as sink:
        world.subscribed(sink.url, filters=example(world))
        sent = [
            world.send("zaken", type=f"{zaken}.zaak_geopend"),
            world.send("zaken", type=f"{zaken}.status_gewijzigd"),
            world.send("zaken", type=f"{zaken}.status_gewijzigd", vertrouwelijkheid="geheim"),
            world.send("zaken", type="anders", vertrouwelijkheid="normaal"),
            world.send("documenten", type=f"{zaken}.status_gewijzigd"),
            world.send("documenten", vertrouwelijkheid="geheim"),
            world.send("documenten", vertrouwelijkheid="Normaal"),
            world.send("documenten", vertrouwelijkheid="normaal"),
        ]
        assert ids(arrive(sink, sent)) == [sent[1]["id"], sent[2]["id"], sent[7]["id"]]


def test_vt16_and_vt17_names_values_and_empty_values(world: World) -> None:
    world.domains("a")
    with consenting() as names, consenting() as empty, consenting() as prefix, consenting() as everything:
        world.subscribed(names.url, **world.here(filters=[{"exact": {"TYPE": "Soort", "NL.VNG.zaaktype": "z"}}]))
        world.subscribed(empty.url, **world.here(filters=[{"exact": {"leeg": ""}}]))
        world.subscribed(prefix.url, **world.here(filters=[{"prefix": {"Leeg": ""}}]))
        world.subscribed(everything.url, **world.here())
        dotted = {"nl.vng.zaakTYPE": "z"}
        sent = [
            world.send("a", type="Soort", **dotted),
            world.send("a", type="soort", **dotted),
            world.send("a", type="Soort"),
            world.send("a", leeg=""),
            world.send("a", leeg="x"),
            world.send("a", leeg=None),
        ]
        marker = world.send("a", type="Soort", leeg="", **dotted)
        assert ids(arrive(names, [marker])) == [sent[0]["id"], marker["id"]]
        assert ids(arrive(empty, [marker])) == ids(arrive(prefix, [marker])) == [sent[3]["id"], marker["id"]]
        # The sender's spelling goes on.
        assert arrive(everything, [marker])[0]["nl.vng.zaakTYPE"] == "z"


def test_vt21_and_vt22_the_copy_and_its_headers(world: World) -> None:
    world.domains("a")
    with consenting() as one, consenting() as two:
        headers = {"X-Afnemer": "gemeente"}
        with_reference = world.subscribed(
            one.url, **world.here(), subscriberReference="kenmerk", protocolSettings={"headers": headers}
        )
        without = world.subscribed(two.url, **world.here())
        chained = {"subscription": "a2de4777-1160-4562-a996-b79d27b30c99", "subscriberReference": "van-een-ander"}
        event = world.send("a", **chained, subject=None)
        plain = {name: value for name, value in event.items() if name not in (*chained, "subject")}
        expected = {**plain, "subscription": with_reference["id"], "subscriberReference": "kenmerk"}
        assert arrive(one, [event]) == [expected]
        assert arrive(two, [event]) == [{**plain, "subscription": without["id"]}]
        (arrival,) = posts(one)
        assert arrival.headers["content-type"] == EVENT
        assert arrival.headers["x-afnemer"] == "gemeente"
        assert arrival.headers["webhook-request-origin"] == "localhost"
        assert not [name for name in arrival.headers if name.startswith("ce-")]


def test_vt23_names_as_cloudevents_libraries_read_them(world: World) -> None:
    world.domains("a")
    with consenting() as sink, consenting() as plain:
        world.subscribed(sink.url, **world.here(), subscriberReference="k", config={"cloudEventsNames": "true"})
        world.subscribed(plain.url, **world.here(), subscriberReference="k")
        event = world.send("a", Vertrouwelijkheid="x")
        (lower,), (own,) = arrive(sink, [event]), arrive(plain, [event])
        assert (lower["subscriberreference"], lower["vertrouwelijkheid"]) == ("k", "x")
        assert (own["subscriberReference"], own["Vertrouwelijkheid"]) == ("k", "x")
        cloudevents = pytest.importorskip("cloudevents.core.bindings.http")
        formats = pytest.importorskip("cloudevents.core.formats.json")
        events = pytest.importorskip("cloudevents.core.v1.event")

        def parsed(arrival: Arrival) -> Any:
            message = cloudevents.HTTPMessage(arrival.headers, arrival.body)
            return cloudevents.from_structured(message, formats.JSONFormat(), events.CloudEvent)

        assert parsed(posts(sink)[0]).get_attributes()["subscriberreference"] == "k"
        with pytest.raises(Exception, match=r"(?i)extension|attribute|lowercase|lower"):
            parsed(posts(plain)[0])


def test_vt24_order_holds_over_three_domains_while_the_sink_fails(world: World, hub: Hub) -> None:
    world.domains("a", "b", "c")
    chance = random.Random(24)
    answers = [SinkAnswer(500), SinkAnswer(429, {"retry-after": "0"}), SinkAnswer(302, {"location": "/x"})]

    def script(arrival: Arrival) -> SinkAnswer:
        return chance.choice(answers) if chance.random() < 0.05 else SinkAnswer(204)

    with consenting(script) as sink:
        world.subscribed(sink.url, **world.here())
        sent = published(hub, [an_event(domain=world.name("abc"[n % 3])) for n in range(200)])
        arrived = arrive(sink, sent, within=150)
    first = list(dict.fromkeys(ids(arrived)))
    assert first == ids(sent)


def published(hub: Hub, events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Publish one after the other on one connection."""
    connection = HTTPConnection("127.0.0.1", hub.port, timeout=120)
    for event in events:
        connection.request("POST", "/vng/events", json.dumps(event), {"content-type": EVENT})
        answer = connection.getresponse()
        assert (answer.status, answer.read()) == (200, json.dumps(event).encode())
    connection.close()
    return events


def status(world: World, subscription: dict[str, Any]) -> dict[str, Any]:
    shown: dict[str, Any] = world.call("GET", f"/subscriptions/{subscription['id']}").json
    return shown


def dead_letters(world: World, subscription: dict[str, Any]) -> list[Any]:
    answer = world.api.call("GET", f"/api/subscriptions/vng:{subscription['id']}/dead-letters")
    assert answer.status == 200, answer.body
    found: list[Any] = answer.json["deadLetters"]
    return found


def test_vt26_permanent_answers_and_a_sink_that_is_gone(world: World) -> None:
    world.domains("a")
    gone = {"now": False}

    def script(arrival: Arrival) -> SinkAnswer:
        if gone["now"]:
            return SinkAnswer(410)
        return SinkAnswer(415 if json.loads(arrival.body)["type"] == "vreemd" else 200)

    with consenting(script) as sink:
        made = world.subscribed(sink.url, **world.here())
        sent = [world.send("a", type="vreemd"), world.send("a")]
        assert ids(arrive(sink, sent)) == ids(sent)
        until(lambda: len(dead_letters(world, made)) == 1, "the event with 415 is a dead letter")
        gone["now"] = True
        parked = world.send("a")
        until(lambda: status(world, made)["status"] == "disabled", "the subscription is disabled")
        assert status(world, made)["statusreason"]
        later = world.send("a")
        gone["now"] = False
        handshakes = len(sink.arrivals) - len(posts(sink))
        answer = world.call("PATCH", f"/subscriptions/{made['id']}", {"config": {"again": "yes"}})
        assert answer.status == 200, answer.body
        assert len(sink.arrivals) - len(posts(sink)) == handshakes + 1
        arrived = ids(arrive(sink, [later]))
        assert arrived[:2] == ids(sent) and arrived[-2:] == [parked["id"], later["id"]]
        assert status(world, made)["status"] == "active"


def test_vt28_a_credential_beats_the_header_and_is_refreshed_once(world: World) -> None:
    world.domains("a")
    refreshed = SinkAnswer(200, {"content-type": "application/json"}, b'{"access_token": "second", "expires_in": 3600}')

    def script(arrival: Arrival) -> SinkAnswer:
        return SinkAnswer(204 if arrival.headers.get("authorization") == "Bearer second" else 401)

    with consenting(script) as sink, Receiver([refreshed]) as endpoint:
        credential = {
            "credentialType": "REFRESHTOKEN",
            "accessToken": "first",
            "accessTokenExpiresUtc": "2099-01-01T00:00:00Z",
            "refreshToken": "r",
            "refreshTokenEndpoint": endpoint.url,
        }
        settings = {"headers": {"Authorization": "Bearer of-the-header"}}
        world.subscribed(sink.url, **world.here(), sinkCredential=credential, protocolSettings=settings)
        world.send("a")
        until(lambda: len(posts(sink)) == 2, "a second try with the new token")
        assert [one.headers["authorization"] for one in posts(sink)] == ["Bearer first", "Bearer second"]
        assert len(endpoint.arrivals) == 1


def test_vt38_a_token_in_the_query_is_nowhere_else(world: World, hub: Hub) -> None:
    world.domains("a")
    token = f"geheim-{uuid.uuid4().hex}"
    with consenting() as sink:
        credential = {"credentialType": "ACCESSTOKEN", "accessToken": token, "accessTokenExpiresUtc": "2099-01-01T00:00:00Z"}
        made = world.subscribed(sink.url, **world.here(), sinkCredential=credential, config={"tokenPlacement": "query"})
        event = world.send("a")
        arrive(sink, [event])
        (arrival,) = posts(sink)
        assert arrival.path == f"/in?access_token={token}"
        assert "authorization" not in arrival.headers
        assert token not in hub.log.read_text(errors="replace")
        shown = world.api.call("GET", f"/api/subscriptions/vng:{made['id']}/deliveries")
        assert shown.status == 200
        assert token.encode() not in shown.body


def test_vt12_the_same_event_twice_is_delivered_once(world: World) -> None:
    world.domains("a")
    with consenting() as sink:
        world.subscribed(sink.url, **world.here())
        event = world.send("a")
        assert world.publish(event).status == 200
        marker = world.send("a")
        assert ids(arrive(sink, [marker])) == ids([event, marker])


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    """A hub whose VNG subscriptions give up soon, and whose VNG door has a port of its own."""
    settings = '[push]\nretry_first = "50ms"\n[vng]\nretry_horizon = "1s"\npermanent_statuses = [418]\n'
    running = Hub(tmp_path_factory.mktemp("short") / "data", settings)
    try:
        yield running.start().wait_ready()
    finally:
        running.stop()


def test_vt25_an_event_that_never_passes_gives_way(short: Hub, tmp_path: Path) -> None:
    world = World(short)
    world.domains("a")

    def script(arrival: Arrival) -> SinkAnswer:
        return SinkAnswer({"giftig": 400, "theepot": 418}.get(json.loads(arrival.body)["type"], 204))

    with consenting(script) as sink:
        made = world.subscribed(sink.url, **world.here())
        sent = [
            world.send("a"),
            world.send("a", type="giftig"),
            world.send("a"),
            world.send("a", type="theepot"),
            world.send("a"),
        ]
        arrived = ids(arrive(sink, sent))
        assert list(dict.fromkeys(arrived)) == ids(sent)
        assert arrived.count(sent[1]["id"]) > 1
        assert arrived.count(sent[3]["id"]) == 1
        until(lambda: len(dead_letters(world, made)) == 2, "both are dead letters")
