"""What Horizon's documents come to is seen through the native API, and cannot be changed there (HOR-12, HOR-159)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.api_process import ApiProcess, an_api
from tests.doors.horizon.worlds import Door, a_horizon_event, a_rover, a_specification, an_entry, exposing
from tidings.doors.horizon.names import subscription_id

TOPIC = "horizon/playground:orders.v1"
SUBSCRIPTION = f"horizon/playground:{subscription_id('playground', 'orders.v1', 'hub--team--bill')}"
PULL = {"kind": "pull"}


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiProcess]:
    with an_api(tmp_path_factory.mktemp("native")) as api:
        Door(api).applied(exposing(), a_specification(), a_rover("bill", subscriptions=[an_entry()]))
        yield api


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("PUT", f"/api/topics/{TOPIC}", {"retention": "30d"}),
        ("PUT", "/api/topics/horizon/elsewhere:x.v1", {}),
        ("DELETE", f"/api/topics/{TOPIC}?force=true", None),
        ("PUT", f"/api/exposures/{TOPIC}", {}),
        ("DELETE", f"/api/exposures/{TOPIC}", None),
        ("PUT", f"/api/subscriptions/{SUBSCRIPTION}", {"topic": TOPIC, "delivery": PULL}),
        ("PUT", f"/api/subscriptions/{SUBSCRIPTION}/policy", {"preset": "default"}),
        ("DELETE", f"/api/subscriptions/{SUBSCRIPTION}", None),
        ("POST", "/api/apply", {"topics": [{"name": TOPIC, "retention": "30d"}]}),
    ],
)
def test_horizon_documents_are_not_overruled(api: ApiProcess, method: str, path: str, body: Any) -> None:
    answer = api.call(method, path, body)
    assert answer.status == 409 and "follows from Horizon documents" in answer.json["detail"], answer.body
    assert Door(api).publish(a_horizon_event()).status == 201


def test_pruning_leaves_what_horizon_asked_for(api: ApiProcess) -> None:
    everything: dict[str, Any] = {"topics": [], "exposures": [], "subscriptions": [], "prune": True}
    assert api.call("POST", "/api/apply", everything).status == 200
    assert api.call("GET", f"/api/subscriptions/{SUBSCRIPTION}").status == 200
    assert api.call("GET", f"/api/topics/{TOPIC}").json["retention"] == 7 * 86400


@pytest.mark.parametrize("source", [{"topic": TOPIC}, {"namespace": "horizon/playground"}])
def test_no_subscription_keeps_events_longer_than_a_week(api: ApiProcess, source: dict[str, str]) -> None:
    wanted = {**source, "delivery": PULL}
    assert api.call("PUT", "/api/subscriptions/long", {**wanted, "retention": "30d"}).status == 400
    assert api.call("PUT", "/api/subscriptions/long", {**wanted, "retention": "7d"}).status in (200, 201)


def test_an_api_without_horizon_documents_is_not_hindered(tmp_path: Path) -> None:
    with an_api(tmp_path) as api:
        assert api.call("PUT", "/api/topics/horizon:orders", {"retention": "30d"}).status == 201


def test_the_status_tells_which_subscriptions_get_nothing_and_why(tmp_path: Path) -> None:
    with an_api(tmp_path) as api:
        other, early = a_rover("bill", subscriptions=[an_entry()]), a_rover("early", subscriptions=[an_entry("later.v1")])
        Door(api).applied(exposing(), a_specification(), a_rover("own", subscriptions=[an_entry()]), early)
        assert Door(api).apply(other, query="?team=hub--other").status == 200
        names = {
            subscription_id("playground", event_type, client): state
            for event_type, client, state in (
                ("orders.v1", "hub--team--own", "active"),
                ("orders.v1", "hub--other--bill", "pending"),
                ("later.v1", "hub--team--early", "blocked"),
            )
        }
        shown = api.call("GET", "/api/status").json["subscriptions"]
        assert {one["name"].partition(":")[2]: one["state"] for one in shown} == names
        assert "\ntidings_open_breakers 0.0\n" in api.call("GET", "/metrics").body.decode()
