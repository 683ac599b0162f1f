"""Horizon streams in a real browser: EventSource with a ticket, CORS, and going on after the last event (HOR-179)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.browser import Page, a_page, needs_browser
from tests.doors.horizon.worlds import Door, a_horizon_event, a_specification, a_stream, exposing, tokens
from tests.doors.horizon.worlds import a_rover as rover
from tests.doors.sse.worlds import Streaming, streaming
from tidings.doors.horizon.names import subscription_id

PROVIDER, CONSUMER = "hub--team--shop", "hub--team--billing"
SUBSCRIPTION = subscription_id("default", "orders.v1", CONSUMER)
STREAM = f"/horizon/sse/v1/orders.v1/{SUBSCRIPTION}"
KEEP_ALIVE = {"keep_alive": "1s"}

pytestmark = needs_browser

READ = """
const hub = "%(hub)s", stream = hub + "%(stream)s";
async function ticket() {
  const asked = {method: "POST", headers: {Authorization: "Bearer %(token)s"}};
  return (await (await fetch(stream + "/ticket", asked)).json()).ticket;
}
function read(address, closed) {
  let last = "";
  const source = new EventSource(address);
  source.onopen = () => tell("open");
  source.onmessage = event => { last = event.lastEventId; tell("event", {id: last, event: JSON.parse(event.data)}); };
  source.onerror = () => { tell("error", {state: source.readyState}); if (source.readyState === 2) closed(last); };
}
"""
WITH_TICKET = """
const begin = async last => read(stream + "?ticket=" + await ticket() + (last ? "&lastEventId=" + last : ""), begin);
begin("").catch(error => tell("refused", {error: String(error)}));
"""
GIVEN_TICKET = 'read(stream + "?ticket=%s", () => tell("closed"));'
OPEN = 'read(stream + "?maxNumber=2", () => tell("closed"));'


@contextmanager
def a_world(folder: Path, **flags: Any) -> Iterator[Streaming]:
    with streaming(folder / "data", **flags) as world:
        subscribing = rover("billing", subscriptions=[a_stream()])
        Door(world.api, PROVIDER, "integration").applied(exposing(), a_specification(), subscribing)
        yield world


def publish(world: Streaming, first: int, last: int) -> None:
    for n in range(first, last + 1):
        event = a_horizon_event(data={"n": n})
        assert Door(world.api, PROVIDER, "integration").publish(event).status == 201
    world.route(world.lane(SUBSCRIPTION))


def script(world: Streaming, rest: str) -> str:
    hub = f"http://127.0.0.1:{world.api.port}"
    return READ % {"hub": hub, "stream": STREAM, "token": CONSUMER} + rest


def numbers(page: Page, count: int) -> list[int]:
    return [note["event"]["data"]["n"] for note in page.told("event", count)]


def test_a_page_reads_with_tickets_and_goes_on_with_a_new_one(tmp_path: Path) -> None:
    with a_page() as page:
        settings = {"access": tokens(PROVIDER, CONSUMER), "sse": {"origins": [page.origin], **KEEP_ALIVE}}
        with a_world(tmp_path, **settings) as world, page.shown(script(world, WITH_TICKET), tmp_path / "profile"):
            page.told("open")
            publish(world, 1, 2)
            assert numbers(page, 2) == [1, 2]
            assert Door(world.api, CONSUMER).call("POST", f"{STREAM}/terminate").status == 200
            # The browser comes again by itself with the used ticket, is refused, and the page asks for a new one.
            page.told("open", 2)
            publish(world, 3, 4)
            assert numbers(page, 4) == [1, 2, 3, 4]
            assert {note["state"] for note in page.heard("error")} == {0, 2}
            assert len({note["id"] for note in page.heard("event")}) == 4


def test_a_browser_comes_again_by_itself_after_the_event_it_saw_last(tmp_path: Path) -> None:
    with a_page() as page, a_world(tmp_path, sse={"origins": [page.origin], **KEEP_ALIVE}) as world:
        publish(world, 1, 5)
        with page.shown(script(world, OPEN), tmp_path / "profile"):
            assert numbers(page, 4) == [1, 2, 3, 4]
            # Only a stream that goes on after an event shows headers without being asked to.
            shown = ["httpHeaders" in note["event"] for note in page.heard("event")]
            assert shown[:4] == [False, False, True, True]


def test_without_a_setting_no_page_from_elsewhere_gets_a_ticket(tmp_path: Path) -> None:
    with a_page() as page, a_world(tmp_path, access=tokens(PROVIDER, CONSUMER)) as world:
        publish(world, 1, 1)
        with page.shown(script(world, WITH_TICKET), tmp_path / "profile"):
            page.told("refused")
        assert page.heard("event") == []


def test_without_a_setting_no_page_from_elsewhere_reads_and_nothing_counts_as_delivered(tmp_path: Path) -> None:
    with a_page() as page, a_world(tmp_path, access=tokens(PROVIDER, CONSUMER)) as world:
        publish(world, 1, 1)
        ticket = Door(world.api, CONSUMER).call("POST", f"{STREAM}/ticket").json["ticket"]
        with page.shown(script(world, GIVEN_TICKET % ticket), tmp_path / "profile"):
            page.told("closed")
        assert page.heard("event") == [] and page.heard("open") == []
        assert world.delivery.lane(world.lane(SUBSCRIPTION)).delivered == 0
