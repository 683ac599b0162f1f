"""Documents as text and their rules, one by one: what is accepted, what is refused where, and what is only warned of."""

from __future__ import annotations

from typing import Any

import pytest

from tests.doors.horizon.worlds import API, a_rover, a_specification, an_entry
from tidings import config
from tidings.delivery.push.policy.policy import policy_of
from tidings.doors.horizon.documents.apply_plan import API_VERSION, Given, given, planned
from tidings.doors.horizon.documents.environment import Environment, Shelf
from tidings.doors.horizon.documents.request_body import documents_in
from tidings.doors.horizon.documents.rovers import Rover
from tidings.doors.horizon.documents.settings import DocumentSettings
from tidings.doors.horizon.layout import HorizonLayout
from tidings.doors.horizon.names import Team, paper_name, subscription_id, team_of
from tidings.doors.horizon.resources.application import own_urls
from tidings.errors import Conflict, InvalidDocument, Malformed
from tidings.registry.model import Exposure, Paper, Push, Snapshot, Stream, Subscription, Topic

TEAM = Team("hub", "team")
EQ = {"eq": {"field": "a", "value": 1}}


def read(raw: Any, **ground: Any) -> Given:
    return given(raw, TEAM, DocumentSettings(**ground))


def faults(raw: Any, **ground: Any) -> dict[str, str]:
    return {place.path: place.reason for place in read(raw, **ground).findings.faults}


def warnings(raw: Any) -> dict[str, str]:
    found = read(raw).findings
    assert not found.faults
    return {place.path: place.reason for place in found.warnings}


def subscribing(**members: Any) -> dict[str, Any]:
    return a_rover(subscriptions=[an_entry(**members)])


def exposing(**members: Any) -> dict[str, Any]:
    return a_rover(exposures=[{"eventType": "orders.v1", **members}])


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: NO", "NO"),
        ("a: yes", "yes"),
        ("a: 2024-01-01", "2024-01-01"),
        ("a: 1:30", "1:30"),
        ("a: 010", 10),
        ("a: 0o10", 8),
        ("a: 0x1F", 31),
        ("a: 1_000", "1_000"),
        ("a: 1e3", 1000.0),
        ("a: .5", 0.5),
        ("a: true", True),
        ("a: ~", None),
        ("a:", None),
        ("a: '12'", "12"),
        ("a: {1: x}", {"1": "x"}),
        ("a: {'<<': x}", {"<<": "x"}),
        ("a: !!str 12", "12"),
        ("a: ! 12", "12"),
        ("a: [&x 1, *x]", [1, 1]),
        ("a: {&k b: 1, c: *k}", {"b": 1, "c": "b"}),
        ("a: =", "="),
    ],
)
def test_yaml_is_read_by_version_1_2(text: str, value: Any) -> None:
    assert documents_in(text.encode(), json=False) == [{"a": value}]


def test_several_documents_and_empty_ones() -> None:
    assert documents_in(b"---\na: 1\n---\n---\nb: 2\n", json=False) == [{"a": 1}, {"b": 2}]
    assert documents_in(b'[{"a":1},{"b":2}]', json=True) == [{"a": 1}, {"b": 2}]


BOMB = "\n".join(
    ["a: &a [x,x,x,x,x,x,x,x,x]"]
    + [f"{b}: &{b} [{','.join([f'*{a}'] * 9)}]" for a, b in zip("abcdefg", "bcdefgh", strict=True)]
)


@pytest.mark.parametrize(
    "text", ["a: 1\na: 2", "a: [", "? [x]\n: y", "a: &x [*x]", "a: !!binary eA==", "a: !x y", BOMB], ids=range(7)
)
def test_what_is_no_document_is_refused_with_a_reason(text: str) -> None:
    with pytest.raises(Malformed):
        documents_in(text.encode(), json=False)


def test_a_complete_specification_and_rover_have_neither_faults_nor_warnings() -> None:
    schema = {"type": "object", "required": ["id"]}
    assert read(a_specification(specification=schema, category="shop")).findings.warnings == []
    assert warnings(a_rover(exposures=[{"eventType": "orders.v1", "visibility": "WORLD"}], subscriptions=[an_entry()])) == {}


@pytest.mark.parametrize(
    ("raw", "path"),
    [
        ({"kind": "Rover"}, "apiVersion"),
        ({**API, "kind": "Ship"}, "kind"),
        ([], ""),
        (a_specification(type="orders"), "spec.type"),
        (a_specification(type="orders_v1"), "spec.type"),
        (a_specification("a." * 130 + "v1"), "spec.type"),
        (a_specification(version=None), "spec.version"),
        (a_specification(version="v1"), "spec.version"),
        (a_specification(description=""), "spec.description"),
        (a_specification(specification={"type": "nothing"}), "spec.specification"),
        (a_specification(specification="x"), "spec.specification"),
        (a_specification(category="A"), "spec.category"),
        ({**a_specification(), "metadata": {"name": "orders.v1"}}, "metadata.name"),
        (a_rover(zone=None), "spec.zone"),
        (a_rover(name="a b"), "metadata.name"),
        (a_rover(subsciptions=[]), "spec.subsciptions"),
        (a_rover(exposure=[]), "spec.exposure"),
        (a_rover(exposures={}), "spec.exposures"),
        (a_rover(subscriptions=["x"]), "spec.subscriptions[0]"),
        (a_rover(subscriptions=[an_entry(), an_entry()]), "spec.subscriptions"),
        (exposing(visibility="all"), "spec.exposures[0].visibility"),
        (exposing(approval="NEVER"), "spec.exposures[0].approval"),
        (exposing(additionalPublisherIds="x"), "spec.exposures[0].additionalPublisherIds"),
        (exposing(additionalPublisherIds=["hub--*"]), "spec.exposures[0].additionalPublisherIds"),
        (exposing(scopes=[{"name": "a"}]), "spec.exposures[0].scopes[0].trigger"),
        (exposing(scopes=[{"trigger": {}}]), "spec.exposures[0].scopes[0].name"),
        (exposing(scopes=[{"name": "a", "trigger": {}}] * 2), "spec.exposures[0].scopes[1].name"),
        (
            exposing(
                scopes=[
                    {"name": "a", "trigger": {"responseFilter": ["x"]}},
                    {"name": "b", "trigger": {"responseFilter": ["x"], "responseFilterMode": "exclude"}},
                ]
            ),
            "spec.exposures[0].scopes",
        ),
        (subscribing(eventType="a b"), "spec.subscriptions[0].eventType"),
        (subscribing(deliveryType=None), "spec.subscriptions[0].deliveryType"),
        (subscribing(deliveryType="mail"), "spec.subscriptions[0].deliveryType"),
        (subscribing(callback=None), "spec.subscriptions[0].callback"),
        (subscribing(callback="ftp://x"), "spec.subscriptions[0].callback"),
        (subscribing(deliveryType="sse"), "spec.subscriptions[0].callback"),
        (subscribing(payloadType="both"), "spec.subscriptions[0].payloadType"),
        (subscribing(payload="dataref"), "spec.subscriptions[0].payload"),
        (subscribing(eventRetentionTime="2d"), "spec.subscriptions[0].eventRetentionTime"),
        (subscribing(circuitBreakerOptOut="yes"), "spec.subscriptions[0].circuitBreakerOptOut"),
        (subscribing(retryableStatusCodes=[99]), "spec.subscriptions[0].retryableStatusCodes[0]"),
        (subscribing(redeliveriesPerSecond=0), "spec.subscriptions[0].redeliveriesPerSecond"),
        (subscribing(deliveryPolicy={"maxRetries": -1}), "spec.subscriptions[0].deliveryPolicy.maxRetries"),
        (
            subscribing(deliveryPolicy={"healthCheckSuccessStatusCodes": []}),
            "spec.subscriptions[0].deliveryPolicy.healthCheckSuccessStatusCodes",
        ),
        (subscribing(scopes=["a", "a"]), "spec.subscriptions[0].scopes"),
        (subscribing(trigger={"responseFilter": "x"}), "spec.subscriptions[0].trigger.responseFilter"),
        (subscribing(trigger={"responseFilter": ["$..x"]}), "spec.subscriptions[0].trigger.responseFilter[0]"),
        (
            subscribing(trigger={"responseFilter": ["a", "$.["], "responseFilterSyntax": "jsonpath"}),
            "spec.subscriptions[0].trigger.responseFilter[1]",
        ),
        (subscribing(trigger={"responseFilterMode": "only"}), "spec.subscriptions[0].trigger.responseFilterMode"),
        (subscribing(trigger={"selectionFilter": {"a": {}}}), "spec.subscriptions[0].trigger.selectionFilter.a"),
        (
            subscribing(trigger={"advancedSelectionFilter": {"and": [EQ, {"rx": {"field": "b", "value": "("}}]}}),
            "spec.subscriptions[0].trigger.advancedSelectionFilter.and[1].rx.value",
        ),
    ],
)  # fmt: skip
def test_what_is_refused_is_told_with_its_path(raw: Any, path: str) -> None:
    assert path in faults(raw)


def test_everything_wrong_is_told_at_once() -> None:
    raw = a_rover(zone=None, exposures=[{"eventType": "a b", "visibility": "x"}], subscriptions=[an_entry(deliveryType="x")])
    assert set(faults(raw)) == {
        "spec.zone",
        "spec.exposures[0].eventType",
        "spec.exposures[0].visibility",
        "spec.subscriptions[0].deliveryType",
    }


def test_an_address_of_the_hub_itself_is_refused() -> None:
    raw = subscribing(callback="http://localhost:8484/api/topics/x/events")
    assert "spec.subscriptions[0].callback" in faults(raw, own_urls=("localhost:8484",))
    assert not faults(raw)


@pytest.mark.parametrize(
    ("raw", "path"),
    [
        (a_specification(version="2.0.0"), "spec.version"),
        (a_rover(owner="me"), "spec.owner"),
        (a_rover(exposures=[{"basePath": "/api"}]), "spec.exposures[0]"),
        (exposing(eventType="orders"), "spec.exposures[0].eventType"),
        (exposing(labels={}), "spec.exposures[0].labels"),
        (subscribing(deliverytype="sse"), "spec.subscriptions[0].deliverytype"),
        (subscribing(payloadType=None), "spec.subscriptions[0].payloadType"),
        (subscribing(trigger={"selectionFilter": {"a": 1}}), "spec.subscriptions[0].trigger.selectionFilter"),
        (subscribing(trigger={"responseFilter": ["$.a.b"]}), "spec.subscriptions[0].trigger.responseFilter[0]"),
        (
            subscribing(trigger={"selectionFilter": {"a": 1}, "advancedSelectionFilter": {"eq": {"field": "a", "value": 1}}}),
            "spec.subscriptions[0].trigger.selectionFilter",
        ),
    ],
)
def test_what_is_odd_is_only_warned_of(raw: Any, path: str) -> None:
    assert path in warnings(raw)


def test_a_misspelled_list_is_told_with_the_right_word() -> None:
    assert "subscriptions" in faults(a_rover(subsciptions=[]))["spec.subsciptions"]


# What documents come to.

EMPTY = Environment("playground")


def core(*raws: Any, before: Environment = EMPTY, **ground: Any) -> dict[str, Any]:
    """The core's documents that these come to, by their kind; several subscriptions by client id."""
    plan = planned(Snapshot(revision=0), before, [read(raw) for raw in raws], DocumentSettings(**ground))
    found: dict[str, Any] = {type(one).__name__: one for one in plan.puts}
    return found | {one.owner: one for one in plan.puts if isinstance(one, Subscription)}


def standing(*raws: Any) -> Environment:
    return planned(Snapshot(revision=0), EMPTY, [read(raw) for raw in raws], DocumentSettings()).after


def test_the_subscription_id_is_as_documented() -> None:
    expected = "e200491417afdf13deb1162a348bd3c887d11789"
    assert subscription_id("playground", "orders.v1", "ecommerce--billing--order-processing") == expected
    assert (team_of("hub--team--an--app"), team_of("anna")) == (("hub", "team"), None)


def test_a_type_becomes_a_topic_with_an_exposure_and_subscriptions() -> None:
    schema = {"type": "object"}
    found = core(a_specification(specification=schema), exposing(), a_rover("bill", subscriptions=[an_entry()]))
    topic, exposure, subscription = found["Topic"], found["Exposure"], found["Subscription"]
    assert isinstance(topic, Topic) and isinstance(exposure, Exposure) and isinstance(subscription, Subscription)
    assert (str(topic.name), topic.retention, topic.duplicates) == ("horizon/playground:orders.v1", 7 * 86400, "off")
    assert topic.schema == {"$schema": "https://json-schema.org/draft/2019-09/schema", **schema}
    assert (exposure.owner, exposure.publishers, exposure.trusted) == (
        "hub--team--shop",
        ("hub--team--shop",),
        ("hub--team--*",),
    )
    assert exposure.approval == "manual" and not subscription.blocked
    assert isinstance(subscription.delivery, Push) and subscription.delivery.layout is not None
    assert subscription.delivery.layout.read(HorizonLayout).publisher == "hub--team--shop"
    assert (subscription.delivery.preset, subscription.retention) == ("horizon", 7 * 86400)


def test_the_times_of_an_attempt_are_the_subscriptions_own() -> None:
    found = core(subscribing(deliveryPolicy={"connectTimeoutMs": 1500, "readTimeoutMs": 2000}))["Subscription"]
    assert isinstance(found.delivery, Push)
    assert policy_of(found.delivery, config.load().push).patience == (2.0, 1.5)
    usual = core(subscribing())["Subscription"].delivery
    assert isinstance(usual, Push) and policy_of(usual, config.load().push).patience == (30.0, 30.0)
    assert "connectTimeoutMs" in next(iter(faults(subscribing(deliveryPolicy={"connectTimeoutMs": 1}))))


def test_a_stream_and_its_retention() -> None:
    found = core(subscribing(deliveryType="server_sent_event", callback=None, eventRetentionTime="1h", payloadType="dataref"))
    subscription = found["Subscription"]
    assert isinstance(subscription.delivery, Stream) and subscription.retention == 3600
    assert subscription.delivery.layout is not None and subscription.delivery.layout.settings["payload"] == "dataref"


def test_a_type_that_nobody_exposes_is_closed_and_its_subscriptions_are_blocked() -> None:
    found = core(subscribing())
    assert (found["Exposure"].publishers, found["Exposure"].subscribers, found["Exposure"].owner) == ((), (), "")
    assert "not exposed" in found["Subscription"].blocked


@pytest.mark.parametrize(
    ("visibility", "zone", "blocked"),
    [
        ("zone", "CAAS", False),
        ("zone", "aws", True),
        ("enterprise", "aws", False),
        ("enterprise", "space", True),
        ("world", "space", False),
        (None, "space", True),
    ],
)
def test_visibility_decides_which_zones_may_subscribe(visibility: str | None, zone: str, blocked: bool) -> None:
    consumer = {**a_rover("bill", subscriptions=[an_entry()])}
    consumer["spec"]["zone"] = zone
    found = core(exposing(visibility=visibility), consumer, internet_zones=("space",))
    assert bool(found["Subscription"].blocked) is blocked


def test_an_additional_publisher_known_to_be_in_another_zone_is_left_out() -> None:
    wanted = exposing(additionalPublisherIds=["hub--team--x", "hub--team--y", "hub--team--z"])
    far, near = a_rover("x"), a_rover("y")
    far["spec"]["zone"] = "aws"
    assert core(wanted, far, near)["Exposure"].publishers == ("hub--team--shop", "hub--team--y", "hub--team--z")


def test_one_application_exposes_a_type() -> None:
    with pytest.raises(Conflict, match="exposed by hub--team--shop"):
        core({**exposing(), "metadata": {"name": "other"}}, before=standing(exposing()))


def test_scopes_may_only_be_removed() -> None:
    offer = exposing(scopes=[{"name": "a", "trigger": {}}, {"name": "b", "trigger": {}}])
    both = a_rover("bill", subscriptions=[an_entry(scopes=["a", "b"])])
    one = a_rover("bill", subscriptions=[an_entry(scopes=["b"])])
    before = standing(offer, both)
    assert core(one, before=before)["Subscription"].scopes == ("b",)
    with pytest.raises(Conflict, match="cannot be added"):
        core(both, before=standing(offer, one))
    with pytest.raises(InvalidDocument, match="it has a, b"):
        core(a_rover("bill", subscriptions=[an_entry(scopes=["c"])]), before=before)


def test_a_scope_that_is_gone_blocks_and_never_opens() -> None:
    before = standing(exposing(scopes=[{"name": "a", "trigger": {}}]), a_rover("bill", subscriptions=[an_entry(scopes=["a"])]))
    found = core(exposing(), before=before)["Subscription"]
    assert "no scope a" in found.blocked and found.scopes == ("a",)


def test_what_a_document_no_longer_names_ends_and_other_types_stay() -> None:
    before = standing(a_rover(subscriptions=[an_entry(), an_entry(eventType="other.v1")]))
    ids = [subscription_id("playground", one, "hub--team--shop") for one in ("orders.v1", "other.v1")]
    names = [f"horizon/playground:{one}" for one in ids]
    stored = planned(
        Snapshot(revision=0),
        EMPTY,
        [read(a_rover(subscriptions=[an_entry(), an_entry(eventType="other.v1")]))],
        DocumentSettings(),
    )
    snapshot = Snapshot(
        revision=1,
        subscriptions={one.name: one for one in stored.puts if isinstance(one, Subscription)},
        topics={one.name: one for one in stored.puts if isinstance(one, Topic)},
    )  # fmt: skip
    plan = planned(snapshot, before, [read(a_rover(subscriptions=[an_entry()]))], DocumentSettings())
    ended = {(one.kind.__name__, str(one.name)) for one in plan.endings}
    assert ended == {("Subscription", names[1]), ("Topic", "horizon/playground:other.v1")}


def test_the_same_document_twice_in_one_apply_is_refused() -> None:
    with pytest.raises(InvalidDocument, match="twice"):
        core(a_rover(), a_rover())


def test_an_entry_whose_event_type_is_misspelled_is_no_plain_api() -> None:
    raw = a_rover(subscriptions=[{"eventtype": "orders.v1", "deliveryType": "sse"}, {"basePath": "/plain/v1"}])
    assert faults(raw) == {"spec.subscriptions[0].eventtype": "is not known here; did you mean eventType? Nothing was removed"}


@pytest.mark.parametrize(
    ("entry", "path"),
    [
        ({"type": "orders.v1", "deliveryType": "sse"}, "spec.subscriptions[0].type"),
        ({"event": "orders.v1", "deliveryType": "sse"}, "spec.subscriptions[0].event"),
        ({"event_type": "orders.v1"}, "spec.subscriptions[0].event_type"),
        ({"EventTypes": ["orders.v1"]}, "spec.subscriptions[0].EventTypes"),
        ({"<<": {"eventType": "orders.v1"}}, "spec.subscriptions[0]"),
        ({"deliveryType": "sse"}, "spec.subscriptions[0]"),
        ({}, "spec.subscriptions[0]"),
    ],
)
def test_an_entry_that_names_no_event_type_never_ends_what_stands(entry: dict[str, Any], path: str) -> None:
    (reason,) = [reason for at, reason in faults(a_rover(subscriptions=[entry])).items() if at == path]
    assert reason.endswith("Nothing was removed")


TRIGGER_PATH = "spec.exposures[0].scopes[0].trigger"


@pytest.mark.parametrize(
    ("raw", "path", "meant"),
    [
        (exposing(scope=[]), "spec.exposures[0].scope", "scopes"),
        (exposing(approvals="FOUREYES"), "spec.exposures[0].approvals", "approval"),
        (exposing(visibilty="zone"), "spec.exposures[0].visibilty", "visibility"),
        (exposing(trusted_teams=[]), "spec.exposures[0].trusted_teams", "trustedTeams"),
        (exposing(approval={"stratgy": "FOUREYES"}), "spec.exposures[0].approval.stratgy", "strategy"),
        (exposing(scopes=[{"name": "a", "triger": {}}]), "spec.exposures[0].scopes[0].triger", "trigger"),
        (
            exposing(scopes=[{"name": "a", "trigger": {"responsefilter": ["a"]}}]),
            f"{TRIGGER_PATH}.responsefilter",
            "responseFilter",
        ),
        (
            exposing(scopes=[{"name": "a", "trigger": {"advancedFilter": {}}}]),
            f"{TRIGGER_PATH}.advancedFilter",
            "advancedSelectionFilter",
        ),
        (
            subscribing(trigger={"selection-filter": {"a": "1"}}),
            "spec.subscriptions[0].trigger.selection-filter",
            "selectionFilter",
        ),
        (subscribing(scope=["a"]), "spec.subscriptions[0].scope", "scopes"),
        (subscribing(triggers={}), "spec.subscriptions[0].triggers", "trigger"),
    ],
)
def test_misspelled_protection_is_refused(raw: Any, path: str, meant: str) -> None:
    assert faults(raw)[path] == f"is not known; did you mean {meant}?"


@pytest.mark.parametrize(
    ("raw", "path", "where"),
    [
        (
            exposing(scopes=[{"name": "a", "trigger": {}, "responseFilter": ["a"]}]),
            "spec.exposures[0].scopes[0].responseFilter",
            "trigger",
        ),
        (
            exposing(scopes=[{"name": "a", "trigger": {}, "advancedselectionfilter": {}}]),
            "spec.exposures[0].scopes[0].advancedselectionfilter",
            "trigger",
        ),
        (exposing(responseFilter=["a"]), "spec.exposures[0].responseFilter", "the trigger of a scope"),
        (exposing(trigger={"responseFilter": ["a"]}), "spec.exposures[0].trigger", "a scope"),
        (subscribing(selectionFilter={"a": "1"}), "spec.subscriptions[0].selectionFilter", "trigger"),
    ],
)
def test_protection_at_the_wrong_level_is_refused(raw: Any, path: str, where: str) -> None:
    assert faults(raw)[path] == f"has no effect here; it belongs into {where}"


def test_nothing_in_the_trigger_of_a_scope_is_passed_over() -> None:
    wanted = exposing(scopes=[{"name": "a", "trigger": {"filter": {"a": "1"}}}])
    assert faults(wanted)[f"{TRIGGER_PATH}.filter"].startswith("is not known; a trigger has advancedSelectionFilter")
    assert not faults(subscribing(trigger={"filter": {"a": "1"}}))


def test_what_was_taken_before_stands_although_it_would_be_refused_today() -> None:
    raw = a_rover(
        exposures=[{"eventType": "orders.v1", "visibilty": "zone"}],
        subscriptions=[an_entry(retryableStatusCodes=[200]), {"type": "other.v1"}],
    )
    name = paper_name("playground", "Rover", "hub--team--shop")
    snapshot = Snapshot(revision=1, papers={name: Paper(name=name, text=raw, owner="hub--team")})
    stood = Shelf(DocumentSettings()).standing(snapshot, "playground").rovers["hub--team--shop"]
    assert [one.event_type for one in (*stood.exposures, *stood.subscriptions)] == ["orders.v1", "orders.v1"]


@pytest.mark.parametrize(
    ("members", "place", "reason"),
    [
        ({"deliveryPolicy": {"successStatusCodes": []}}, "deliveryPolicy.successStatusCodes", "must list at least one status"),
        ({"deliveryPolicy": {"healthCheckSuccessStatusCodes": []}}, "deliveryPolicy.healthCheckSuccessStatusCodes", "at least"),
        ({"retryableStatusCodes": [200]}, "retryableStatusCodes", "lists 200, which is a success"),
        ({"retryableStatusCodes": [503, 200, 204]}, "retryableStatusCodes", "lists 200, 204, which are a success"),
        (
            {"retryableStatusCodes": [409], "deliveryPolicy": {"successStatusCodes": [200, 409]}},
            "retryableStatusCodes",
            "lists 409, which is a success",
        ),
    ],
)
def test_a_policy_that_contradicts_itself_is_refused(members: dict[str, Any], place: str, reason: str) -> None:
    assert reason in faults(subscribing(**members))[f"spec.subscriptions[0].{place}"]


def test_a_status_that_is_no_success_any_more_may_be_retried() -> None:
    assert not faults(subscribing(retryableStatusCodes=[202], deliveryPolicy={"successStatusCodes": [200, 429]}))


@pytest.mark.parametrize(
    ("raw", "told"),
    [
        ({**API, "metadata": {"name": "a"}}, {"kind": "is missing; it is Rover or EventSpecification"}),
        ({**API, "kind": "rover"}, {"kind": "must be Rover or EventSpecification, found 'rover'"}),
        (
            {"kind": "Rover", "metadata": {"name": "a"}, "spec": {"zone": "a"}},
            {"apiVersion": f"is missing; it is {API_VERSION}"},
        ),
    ],
)
def test_a_document_without_kind_or_version_is_told_which_there_are(raw: Any, told: dict[str, str]) -> None:
    assert faults(raw) == told


@pytest.mark.parametrize("spec", [{}, {"subscriptions": None}])
def test_all_entries_of_a_list_are_only_removed_by_an_empty_one(spec: dict[str, Any]) -> None:
    before = standing(a_rover(subscriptions=[an_entry()]))
    with pytest.raises(InvalidDocument, match=r"spec.subscriptions is left out, .* write \[\] to remove all of them"):
        core(a_rover(**spec), before=before)
    assert core(a_rover(subscriptions=[]), before=before)["Paper"].text["spec"]["subscriptions"] == []


def test_no_port_of_the_hub_is_a_callback() -> None:
    server = {"public_url": "https://Hub.example/base"}
    settings = config.load(environ={}, flags={"horizon": {"port": 9999}, "server": server})
    assert {"hub.example", "localhost:8484", "127.0.0.1:9999", "[::1]:9999"} <= set(own_urls(settings))


def test_hor_97_the_paths_of_some_types_are_jsonpaths() -> None:
    trigger = {"responseFilter": ["$.items[0].name"]}
    raw = subscribing(trigger=trigger)
    assert "spec.subscriptions[0].trigger.responseFilter[0]" in faults(raw)
    wish = read(raw, jsonpath_types=("orders.v1",)).wish
    assert isinstance(wish, Rover) and wish.subscriptions[0].trigger.projection is not None
    assert wish.subscriptions[0].trigger.projection.syntax == "jsonpath"
    plain = subscribing(trigger={"responseFilter": ["items.0.name"], "responseFilterSyntax": "dotted"})
    other = read(plain, jsonpath_types=("orders.v1",)).wish
    assert isinstance(other, Rover) and other.subscriptions[0].trigger.projection is not None
    assert other.subscriptions[0].trigger.projection.syntax == "dotted"
    scopes = exposing(scopes=[{"name": "some", "trigger": trigger}])
    assert faults(scopes) and not faults(scopes, jsonpath_types=("orders.v1",))
