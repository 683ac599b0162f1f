"""What became of an event is told to the owner of the subscription and to administrators; a trace shows each what is theirs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.api_process import ApiProcess, an_api
from tests.doors.native.test_rights import RIGHTS, TO, asks
from tests.polling import until
from tidings.access.authentication import token_digest
from tidings.ids import DeliveryIds
from tidings.lanes.sink import Routed
from tidings.lanes.sqlite.block import packed
from tidings.lanes.sqlite.writer import SqliteLanesWriter
from tidings.log.position import LaneNumber, embedded

DEAD_LETTERS = "tidings:dead-letters"


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiProcess]:
    """Lanes 1 (invoices, of billing) and 2 (customers, of crm) hold the one event of orders."""
    tokens = [{"name": name, "sha256": token_digest(name), "rights": rights} for name, rights in RIGHTS.items()]
    with an_api(
        tmp_path_factory.mktemp("rights"), access={"mode": "tokens", "tokens": tokens}, push={"dead_letter_events": True}
    ) as api:
        asks(api, "boss", "PUT", "/api/topics/orders", {})
        until(lambda: asks(api, "boss", "GET", f"/api/topics/{DEAD_LETTERS}").status == 200)
        for owner, name in (("billing", "invoices"), ("crm", "customers")):
            assert asks(api, owner, "PUT", f"/api/subscriptions/{name}", {"topic": "orders", "to": TO}).status == 201
        assert asks(api, "shop", "POST", "/api/topics/orders/events", {"total": 5}).json["first"] == "0-1"
        lanes = SqliteLanesWriter(api.data)
        lanes.write(Routed([packed(LaneNumber(1), [1]), packed(LaneNumber(2), [1])], embedded(1)))
        lanes.close()
        yield api


@pytest.mark.parametrize(
    ("who", "path", "status"),
    [
        ("billing", "/api/subscriptions/invoices/deliveries", 200),
        ("crm", "/api/subscriptions/invoices/deliveries", 404),
        ("crm", "/api/subscriptions/invoices/deliveries/0-1", 404),
        ("boss", "/api/subscriptions/invoices/deliveries/0-1", 200),
        ("shop", "/api/topics/orders/events/0-1/trace", 200),
        ("shop", "/api/topics/orders/find?id=1", 403),
        ("billing", "/api/topics/orders/find?id=1", 200),
    ],
)
def test_who_may_ask(api: ApiProcess, who: str, path: str, status: int) -> None:
    assert asks(api, who, "GET", path).status == status


def test_the_id_of_somebody_elses_delivery_leads_nowhere(api: ApiProcess) -> None:
    ids = DeliveryIds((api.data / "hub.key").read_bytes())
    path = f"/api/deliveries/{ids.text_of(1, 0, 1)}"
    assert [asks(api, who, "GET", path).status for who in ("billing", "boss", "crm", "shop")] == [200, 200, 404, 404]


@pytest.mark.parametrize(
    ("who", "expected"),
    [("boss", ["customers", "invoices"]), ("billing", ["invoices"]), ("crm", ["customers"]), ("shop", [])],
)
def test_a_trace_shows_each_what_is_theirs(api: ApiProcess, who: str, expected: list[str]) -> None:
    traced = asks(api, who, "GET", "/api/topics/orders/events/0-1/trace").json
    assert [one["subscription"] for one in traced["deliveries"]] == expected


def test_an_administrator_decides_who_is_told_of_dead_letters(api: ApiProcess) -> None:
    made = asks(api, "crm", "PUT", "/api/subscriptions/nosy", {"topic": DEAD_LETTERS, "to": TO})
    assert made.json["approvals"] == {DEAD_LETTERS: "pending"}
    assert asks(api, "shop", "POST", f"/api/topics/{DEAD_LETTERS}/events", {}).status == 403
    granted = asks(api, "boss", "PUT", f"/api/approvals/nosy/{DEAD_LETTERS}", {"state": "granted"})
    assert granted.status == 200
    assert asks(api, "crm", "GET", "/api/subscriptions/nosy").json["approvals"] == {DEAD_LETTERS: "granted"}
