"""Rows of the test plan that need documents and publishing only, each named by its id."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.api_process import ApiProcess, an_api
from tests.conformance import SHARED_DATA
from tests.doors.horizon.worlds import Door, a_horizon_event, a_rover, a_specification, an_entry, exposing, tokens, violations
from tidings.doors.horizon.publish.event_fields import problem_of

VECTORS = SHARED_DATA / "filters" / "horizon.json"
EQ = {"eq": {"field": "$.a", "value": 1}}


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiProcess]:
    with an_api(tmp_path_factory.mktemp("api")) as running:
        yield running


def subscribed(door: Door, team: str = "", **members: Any) -> Any:
    query = f"?team={team}" if team else ""
    return door.apply(a_rover("bill", subscriptions=[an_entry(**members)]), query=query)


def field_vectors() -> list[Any]:
    found = json.loads(VECTORS.read_text("utf-8"))["event_field_validation_vectors"] if VECTORS.exists() else []
    return [
        pytest.param(one["field"], one["value"], one["expected_valid"], id=f"{one['field']}-{n}") for n, one in enumerate(found)
    ]


@pytest.mark.skipif(not VECTORS.exists(), reason=f"the vectors are not at {VECTORS}")
@pytest.mark.parametrize(("field", "value", "valid"), field_vectors())
def test_hor_t05_the_vectors_of_single_fields(field: str, value: Any, valid: bool) -> None:
    assert (problem_of(field, value) is None) is valid


def test_hor_t12_operators_are_counted_and_a_broken_expression_is_named(api: ApiProcess) -> None:
    door = Door(api, environment="t12")
    filter = "spec.subscriptions[0].trigger.advancedSelectionFilter"
    assert subscribed(door, trigger={"advancedSelectionFilter": {"and": [EQ] * 41}}).status == 200
    many = subscribed(door, trigger={"advancedSelectionFilter": {"and": [EQ] * 42}})
    assert many.status == 400 and violations(many).keys() == {f"{filter}.and[41].eq"}
    broken = subscribed(door, trigger={"advancedSelectionFilter": {"and": [EQ, {"rx": {"field": "$.b", "value": "a("}}]}})
    assert broken.status == 400 and violations(broken).keys() == {f"{filter}.and[1].rx.value"}


def test_hor_t17_scopes_are_removed_and_never_added(api: ApiProcess) -> None:
    door = Door(api, environment="t17")
    door.applied(exposing(scopes=[{"name": name, "trigger": {}} for name in ("a", "b", "c")]), a_specification())
    assert subscribed(door, scopes=["a", "b"]).status == 200
    added = subscribed(door, scopes=["a", "b", "c"])
    assert added.status == 409 and violations(added).keys() == {"spec.subscriptions[0].scopes[2]"}
    assert subscribed(door, scopes=["b"]).status == 200
    assert subscribed(door, scopes=["a", "b"]).status == 409
    unknown = subscribed(door, scopes=["x"])
    assert unknown.status == 400 and "it has a, b, c" in violations(unknown)["spec.subscriptions[0].scopes[0]"]


def test_hor_t41_a_second_exposure_a_type_without_version_and_a_misspelled_field(api: ApiProcess) -> None:
    door = Door(api, environment="t41")
    door.applied(exposing())
    second = door.apply(exposing(name="other"))
    assert second.status == 409 and violations(second).keys() == {"spec.exposures[0].eventType"}
    assert violations(door.apply(a_specification("orders"))).keys() == {"spec.type"}
    assert violations(door.apply(exposing(visibilty="world"))).keys() == {"spec.exposures[0].visibilty"}
    (misspelled,) = door.parts(a_rover("bill", subscriptions=[an_entry(payloadtype="data")]))
    told = "spec.subscriptions[0].payloadtype is not known and has no effect; did you mean payloadType?"
    assert told in misspelled["warnings"]


def test_events_of_a_type_are_tracked_by_nobody_but_its_owner(tmp_path_factory: pytest.TempPathFactory) -> None:
    owner, more, other = "hub--team--shop", "hub--team--more", "hub--other--x"
    with an_api(tmp_path_factory.mktemp("api"), access=tokens(owner, more, other)) as api:
        Door(api, owner).applied(exposing(additionalPublisherIds=[more]), a_specification())
        assert Door(api, more).publish(a_horizon_event()).status == 201
        path = "/horizon/v1/playground/event-types/orders.v1/events"
        (told,) = Door(api, owner).call("GET", path).json["items"]
        assert (told["publisher"], told["payload"]) == (more, "kept")
        assert Door(api, "root").call("GET", path).status == 200
        assert [Door(api, one).call("GET", path).status for one in (more, other)] == [403, 403]


def test_nobody_reads_the_subscriptions_of_others(tmp_path_factory: pytest.TempPathFactory) -> None:
    owner, subscriber, other = "hub--team--shop", "hub--bills--bill", "hub--other--x"
    with an_api(tmp_path_factory.mktemp("api"), access=tokens(owner, subscriber, other)) as api:
        Door(api, owner).applied(exposing(), a_specification())
        (part,) = Door(api, subscriber).parts(a_rover("bill", subscriptions=[an_entry()]))
        name = part["subscriptionId"]
        path = f"/horizon/v1/playground/subscriptions/{name}"
        assert Door(api, owner).decide(name, "APPROVE").status == 200

        def statuses(method: str, path: str, body: Any = None) -> list[int]:
            return [Door(api, one).call(method, path, body).status for one in (owner, subscriber, "root", other)]

        assert statuses("GET", path) == [200, 200, 200, 403]
        assert statuses("GET", f"{path}/events") == [403, 200, 200, 403]
        assert statuses("POST", f"{path}/redeliver", {"ids": ["x"]}) == [403, 202, 202, 403]
        assert statuses("GET", f"/horizon/api/v1/circuit-breakers/{name}") == [403, 200, 200, 403]
        # Nobody but administrators can tell what is not theirs from what is not there.
        assert statuses("GET", f"{path[:-1]}x") == [403, 403, 404, 403]
        assert Door(api).call("GET", path).status == 401
        assert Door(api, subscriber).call("GET", f"{path}/events?status=NO").status == 400
        assert Door(api, subscriber).call("GET", f"{path}/events/no-id").status == 404
        assert Door(api, subscriber).call("GET", f"{path}/events?from=yesterday").status == 400
