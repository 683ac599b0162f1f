"""Management over HTTP: groups, topics, subscriptions, providers (HER-10 to HER-61, HER-T01 to T03, T21 to T23, T25, T28, T50)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.api_process import an_api
from tests.doors.hermes.worlds import OWNER, HermesDoor, a_subscription, a_topic, refusal
from tidings.access.authentication import token_digest

S = "/topics/shop.orders/subscriptions"
POLICY = {
    "rate": 400,
    "messageTtl": 3600,
    "messageBackoff": 100,
    "retryClientErrors": False,
    "requestTimeout": 1000,
    "socketTimeout": 0,
    "backoffMultiplier": 1.0,
    "backoffMaxIntervalInSec": 600,
    "sendingDelay": 0,
}
FULL = {
    "topicName": "shop.orders",
    "name": "full",
    "endpoint": "http://my-service",
    "description": "This is my subscription",
    "trackingMode": "trackingAll",
    "owner": OWNER,
    "contact": "my-team@my-company.com",
    "subscriptionPolicy": {
        "rate": 100,
        "messageTtl": 3600,
        "retryClientErrors": False,
        "messageBackoff": 100,
        "requestTimeout": 1000,
        "socketTimeout": 500,
        "inflightSize": 100,
        "backoffMultiplier": 1.0,
        "backoffMaxIntervalInSec": 600,
    },
    "headers": [{"name": "SOME_HEADER", "value": "ABC"}, {"name": "OTHER_HEADER", "value": "123"}],
    "filters": [
        {"type": "jsonpath", "path": "$.user.name", "matcher": "^abc.*"},
        {"type": "jsonpath", "path": "$.user.status", "matcher": "new"},
        {"type": "jsonpath", "path": "$.user.name", "matcher": "^abc.*", "matchingStrategy": "all"},
        {"type": "jsonpath", "path": "$.user.status", "matcher": "new"},
        {"type": "jsonpath", "path": "$.addresses.*.country", "matcher": "GB", "matchingStrategy": "any"},
    ],
    "endpointAddressResolverMetadata": {"ignoreMessageHeaders": True, "serviceInstanceId": 123},
    "subscriptionIdentityHeadersEnabled": False,
}
PROVIDER = {
    "name": "myOAuthService",
    "tokenEndpoint": "https://oauth.example.com/oauth2/token",
    "clientId": "myHermes",
    "clientSecret": "abc123",
    "tokenRequestInitialDelay": 1000,
    "tokenRequestMaxDelay": 30000,
    "requestTimeout": 1000,
    "socketTimeout": 500,
}


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HermesDoor]:
    with an_api(tmp_path_factory.mktemp("api")) as api:
        door = HermesDoor(api)
        door.topic()
        yield door


def within(part: Any, whole: Any) -> bool:
    """Whether everything of one document is in the other."""
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(name in whole and within(value, whole[name]) for name, value in part.items())
    return bool(part == whole)


def create(door: HermesDoor, **members: Any) -> Any:
    return door.call("POST", S, a_subscription(**members))


def test_groups_come_and_go(door: HermesDoor) -> None:
    assert door.made("/groups", {"groupName": "a.b", "supportTeam": "x"}).status == 201
    assert refusal(door.call("POST", "/groups", {"groupName": "a.b"})) == (400, "GROUP_ALREADY_EXISTS")
    assert refusal(door.call("POST", "/groups", {"groupName": "a_b"})) == (400, "GROUP_NAME_IS_INVALID")
    assert door.get("/groups/a.b") == {"groupName": "a.b", "supportTeam": "x"}
    assert door.call("PUT", "/groups/a.b", {}).status == 204
    assert door.get("/groups/a.b") == {"groupName": "a.b"}
    missing = door.call("GET", "/groups/nothing")
    assert refusal(missing) == (404, "GROUP_NOT_EXISTS") and missing.json["message"] == "Group nothing does not exist"
    full = door.call("DELETE", "/groups/shop")
    assert refusal(full) == (403, "GROUP_NOT_EMPTY") and full.json["message"] == "Group shop is not empty"
    assert door.call("DELETE", "/groups/a.b").status == 200
    assert door.get("/groups") == ["shop"]


def test_a_topic_has_its_defaults_and_its_times(door: HermesDoor) -> None:
    topic = door.get("/topics/shop.orders")
    assert within({"ack": "LEADER", "maxMessageSize": 51200, "trackingEnabled": False, "validationEnabled": True}, topic)
    assert topic["auth"] == {"publishers": [], "enabled": False, "unauthenticatedAccessEnabled": True}
    assert topic["retentionTime"] == {"duration": 1, "retentionUnit": "DAYS"}
    assert topic["createdAt"] == topic["modifiedAt"] > 1.7e9


@pytest.mark.parametrize(
    ("member", "value", "told"),
    [
        ("name", None, "Topic.name must not be null"),
        ("name", "plain", "Topic.name must be group.topic"),
        ("name", "shop.a b", "Topic.name must match"),
        ("description", None, "Topic.description must not be null"),
        ("owner", None, "Topic.owner must not be null"),
        ("owner", {"source": "LDAP", "id": "x"}, "Owner source 'LDAP' doesn't exist"),
        ("retentionTime", None, "Topic.retentionTime must not be null"),
        ("retentionTime", {"duration": -1}, "Topic.retentionTime.duration must be greater than or equal to 0"),
        ("contentType", None, "Topic.contentType must not be null"),
        ("maxMessageSize", 1023, "Topic.maxMessageSize must be greater than or equal to 1024"),
        ("maxMessageSize", 2097153, "Topic.maxMessageSize must be less than or equal to 2097152"),
    ],
)
def test_a_topic_that_breaks_a_rule_is_refused_with_the_field(door: HermesDoor, member: str, value: Any, told: str) -> None:
    before = door.get("/topics")
    answer = door.call("POST", "/topics", a_topic(**{"name": "shop.new", member: value}))
    assert refusal(answer) == (400, "VALIDATION_ERROR") and told in answer.json["message"]
    assert door.get("/topics") == before


def test_what_cannot_be_read_is_a_format_error(door: HermesDoor) -> None:
    for body in (b"{", b"[]", b'{"name": 5}', b'{"contentType": "XML", "name": "shop.x"}'):
        assert refusal(door.call("POST", "/topics", body)) == (400, "FORMAT_ERROR"), body
    typed = door.call("POST", "/topics", b"{}", {"content-type": "text/plain"})
    assert refusal(typed) == (415, "OTHER")


def test_topics_are_listed_changed_and_kept(door: HermesDoor, tmp_path: Path) -> None:
    door.topic("shop.listed", trackingEnabled=True)
    assert refusal(door.call("POST", "/topics", a_topic("shop.listed"))) == (400, "TOPIC_ALREADY_EXISTS")
    assert refusal(door.call("POST", "/topics", a_topic("none.listed"))) == (404, "GROUP_NOT_EXISTS")
    assert door.get("/topics?groupName=shop&tracked=true") == ["shop.listed"]
    assert door.call("PUT", "/topics/shop.listed", {"description": "new", "auth": {"enabled": True}}).status == 200
    changed = door.get("/topics/shop.listed")
    assert (changed["description"], changed["auth"]["enabled"], changed["trackingEnabled"]) == ("new", True, True)
    assert changed["modifiedAt"] > changed["createdAt"]
    assert refusal(door.call("PUT", "/topics/shop.listed", {"contentType": "AVRO"})) == (400, "VALIDATION_ERROR")
    assert refusal(door.call("DELETE", "/topics/shop.listed")) == (406, "OPERATION_DISABLED")
    assert refusal(door.call("GET", "/topics/shop.nothing")) == (404, "TOPIC_NOT_EXISTS")


def test_a_topic_goes_with_the_subscriptions_that_go_with_it(tmp_path: Path) -> None:
    with an_api(tmp_path, hermes={"topic_removal": True}) as api:
        door = HermesDoor(api)
        door.topic()
        door.subscribe("stays")
        door.subscribe("goes", autoDeleteWithTopicEnabled=True)
        assert refusal(door.call("DELETE", "/topics/shop.orders")) == (403, "TOPIC_NOT_EMPTY")
        assert door.call("DELETE", f"{S}/stays").status == 200
        assert door.call("DELETE", "/topics/shop.orders").status == 200
        assert door.get("/topics") == []
        assert api.call("GET", "/api/subscriptions").json["subscriptions"] == []
        assert api.call("GET", "/api/topics/hermes:shop.orders").status == 404


def test_a_json_schema_is_checked_kept_and_taken_away(door: HermesDoor) -> None:
    door.topic("shop.schema", schema='{"type": "object"}')
    assert door.call("GET", "/topics/shop.schema/schema").body == b'{"type": "object"}'
    assert door.call("POST", "/topics/shop.schema/schema", {"type": "array"}).status == 201
    assert door.publish("shop.schema", [1]).status == 201 and door.publish("shop.schema", {}).status == 400
    for broken in (b'{"type": 5}', b"[]", b"{"):
        assert door.call("POST", "/topics/shop.schema/schema", broken).status == 400, broken
    assert door.call("DELETE", "/topics/shop.schema/schema").status == 200
    assert door.call("GET", "/topics/shop.schema/schema").status == 204
    assert door.publish("shop.schema", {}).status == 201
    assert door.call("POST", "/topics", a_topic("shop.broken", schema='{"type": 5}')).status == 400


def test_t01_the_minimal_subscription_has_all_defaults(door: HermesDoor) -> None:
    assert create(door).status == 201
    found = door.get(f"{S}/mySubscription")
    assert within(POLICY, found["subscriptionPolicy"]) and "inflightSize" not in found["subscriptionPolicy"]
    defaults = {
        "trackingMode": "trackingOff",
        "trackingEnabled": False,
        "headers": [],
        "filters": [],
        "endpointAddressResolverMetadata": {},
        "subscriptionIdentityHeadersEnabled": False,
        "deliveryType": "SERIAL",
        "mode": "ANYCAST",
        "contentType": "JSON",
        "state": "ACTIVE",
        "monitoringDetails": {"severity": "NON_IMPORTANT", "reaction": ""},
    }
    assert within({**a_subscription(), **defaults}, found)


@pytest.mark.parametrize("member", ["topicName", "name", "description", "endpoint", "owner"])
def test_t01_each_needed_field_is_named(door: HermesDoor, member: str) -> None:
    answer = create(door, **{"name": "lacking", member if member != "topicName" else "topic": None})
    assert refusal(answer) == (400, "VALIDATION_ERROR") and f"Subscription.{member} must not be null" in answer.json["message"]
    assert "lacking" not in door.get(S)


def test_t02_and_t47_the_full_example_of_the_page_is_returned_unchanged(door: HermesDoor) -> None:
    assert door.call("POST", S, FULL).status == 201
    found = door.get(f"{S}/full")
    assert within({name: value for name, value in FULL.items() if name != "contact"}, found) and "contact" not in found
    assert refusal(door.call("POST", S, FULL)) == (400, "SUBSCRIPTION_ALREADY_EXISTS")
    unknown = door.call("POST", "/topics/shop.nothing/subscriptions", {**FULL, "topicName": "shop.nothing"})
    assert refusal(unknown) == (404, "TOPIC_NOT_EXISTS") and unknown.json["message"] == "Topic shop.nothing does not exist"
    other = door.call("POST", S, {**FULL, "topicName": "shop.listed", "name": "other"})
    assert refusal(other) == (400, "VALIDATION_ERROR") and "Subscription.topicName" in other.json["message"]
    missing = door.call("GET", f"{S}/nothing")
    assert refusal(missing) == (400, "SUBSCRIPTION_NOT_EXISTS")
    assert missing.json["message"] == "Subscription nothing for topic shop.orders does not exist."


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("messageTtl", 7201),
        ("rate", 0),
        ("backoffMultiplier", 11),
        ("backoffMultiplier", 0.5),
        ("requestTimeout", 99),
        ("requestTimeout", 300_001),
        ("socketTimeout", 300_001),
        ("inflightSize", 0),
        ("backoffMaxIntervalInSec", 601),
        ("sendingDelay", 5001),
        ("messageBackoff", -1),
    ],
)
def test_t03_a_policy_out_of_its_range_names_the_field(door: HermesDoor, field: str, value: float) -> None:
    answer = create(door, name="bad", subscriptionPolicy={field: value})
    assert refusal(answer) == (400, "VALIDATION_ERROR")
    assert answer.json["message"].startswith(f"Subscription.serialSubscriptionPolicy.{field} must be")
    assert "bad" not in door.get(S)


def test_a_batch_has_a_policy_of_its_own(door: HermesDoor) -> None:
    door.subscribe("batch", deliveryType="BATCH", subscriptionPolicy={"batchSize": 3})
    policy = door.get(f"{S}/batch")["subscriptionPolicy"]
    assert policy == {
        "messageTtl": 60,
        "retryClientErrors": False,
        "messageBackoff": 500,
        "requestTimeout": 30000,
        "batchSize": 3,
        "batchTime": 30000,
        "batchVolume": 64000,
        "batchFormat": "wrapped",
    }
    core = door.api.call("GET", "/api/subscriptions/hermes%2Fshop.orders:batch").json["delivery"]
    assert (core["preset"], core["batchSize"], core["batchForm"]) == ("hermes-batch", 3, "wrapped")
    avro = create(door, name="bad", deliveryType="BATCH", contentType="AVRO")
    assert "AVRO content type is not supported in BATCH delivery mode" in avro.json["message"]
    assert refusal(create(door, name="bad", deliveryType="BATCH", endpoint="http://h/{a}")) == (400, "VALIDATION_ERROR")


@pytest.mark.parametrize(
    ("one", "place"),
    [
        ({"type": "jsonpath", "path": "$.a", "matcher": "("}, "filters[0].matcher"),
        ({"type": "jsonpath", "path": "$.a[", "matcher": "x"}, "filters[0].path"),
        ({"type": "jsonpath", "path": "$.a"}, "filters[0].matcher"),
        ({"type": "jsonpath", "matcher": "x"}, "filters[0].path"),
        ({"type": "header", "matcher": "x"}, "filters[0].header"),
        ({"type": "xpath", "path": "$.a", "matcher": "x"}, "filters[0].type"),
        ({"path": "$.a", "matcher": "x"}, "filters[0].type"),
        ({"type": "avropath", "path": ".a", "matcher": "x"}, "filters[0].type"),
    ],
)
def test_t21_a_filter_that_cannot_be_evaluated_is_refused_with_the_place(
    door: HermesDoor, one: dict[str, Any], place: str
) -> None:
    answer = create(door, name="bad", filters=[one])
    assert refusal(answer) == (400, "VALIDATION_ERROR") and answer.json["message"].startswith(place), answer.json
    assert "bad" not in door.get(S)
    door.call("POST", S, a_subscription("filtered", filters=[]))
    assert refusal(door.call("PUT", f"{S}/filtered", {"filters": [one]})) == (400, "VALIDATION_ERROR")
    assert door.get(f"{S}/filtered")["filters"] == []


def test_t21_an_avropath_on_a_json_topic_is_told_as_hermes_does(door: HermesDoor) -> None:
    answer = create(door, name="bad", filters=[{"type": "avropath", "path": ".a", "matcher": "x"}])
    assert "Message filter type avropath doesn't match topic content type JSON" in answer.json["message"]


def test_t22_an_unknown_strategy_is_all_here_and_refused_there(door: HermesDoor) -> None:
    one = {"type": "jsonpath", "path": "$.a[*]", "matcher": "x", "matchingStrategy": "most"}
    answer = create(door, name="strategy", filters=[one])
    assert answer.status == 201 and "matchingStrategy" in answer.headers["tidings-warning"]
    assert door.get(f"{S}/strategy")["filters"][0]["matchingStrategy"] == "all"
    native = {"topic": "hermes:shop.orders", "delivery": {"kind": "pull"}, "filter": {"dialect": "hermes", "filter": [one]}}
    assert door.api.call("PUT", "/api/subscriptions/strategy", native).status == 400


def test_t23_a_put_merges_objects_and_replaces_lists(door: HermesDoor) -> None:
    path = door.subscribe("patched", filters=[{"type": "jsonpath", "path": "$.a", "matcher": "x"}], state="PENDING")
    before = door.get(path)
    other = {"type": "jsonpath", "path": "$.b", "matcher": "y"}
    assert door.call("PUT", path, {"filters": [other], "state": "PENDING"}).status == 200
    after = door.get(path)
    assert after["filters"] == [other]
    assert door.call("PUT", path, {"subscriptionPolicy": {"rate": 7}}).status == 200
    last = door.get(path)
    assert last["subscriptionPolicy"] == {**before["subscriptionPolicy"], "rate": 7}
    kept = {name: value for name, value in before.items() if name not in ("filters", "subscriptionPolicy", "modifiedAt")}
    assert within(kept, last)
    assert refusal(door.call("PUT", path, {"name": "another"})) == (400, "VALIDATION_ERROR")
    assert refusal(door.call("PUT", f"{S}/nothing", {})) == (400, "SUBSCRIPTION_NOT_EXISTS")


@pytest.mark.parametrize(
    ("given", "mode"),
    [
        ({"trackingMode": "discardedOnly"}, "discardedOnly"),
        ({"trackingMode": "whatever"}, "trackingOff"),
        ({"trackingEnabled": True}, "trackingAll"),
        ({"trackingEnabled": True, "trackingMode": "trackingOff"}, "trackingOff"),
    ],
)
def test_tracking_has_a_mode_and_an_older_word(door: HermesDoor, given: dict[str, Any], mode: str) -> None:
    path = door.subscribe(f"tracked-{mode}-{len(given)}-{given.get('trackingMode')}", **given)
    found = door.get(path)
    assert (found["trackingMode"], found["trackingEnabled"]) == (mode, mode != "trackingOff")
    assert door.call("PUT", path, {"trackingEnabled": mode == "trackingOff"}).status == 200
    assert door.get(path)["trackingMode"] == ("trackingAll" if mode == "trackingOff" else "trackingOff")


@pytest.mark.parametrize("endpoint", ["ftp://x", "http://my_host/x", "hello", "http://", "jms://queue"])
def test_t46_an_endpoint_that_cannot_be_is_refused(door: HermesDoor, endpoint: str) -> None:
    answer = create(door, name="bad", endpoint=endpoint)
    assert refusal(answer) == (400, "VALIDATION_ERROR")
    assert answer.json["message"] == "Subscription.endpoint Endpoint address has invalid format"


def test_an_endpoint_that_cannot_be_reached_or_is_the_hub_itself_is_warned_of(door: HermesDoor) -> None:
    answer = create(door, name="private", endpoint="http://10.0.0.1/")
    assert answer.status == 201 and "push.allow" in answer.headers["tidings-warning"]
    own = f"http://127.0.0.1:{door.api.port}/hermes/topics/shop.orders"
    changed = door.call("PUT", f"{S}/private", {"endpoint": own})
    assert changed.status == 200 and "this hub itself" in changed.headers["tidings-warning"]


def test_the_audit_log_leaves_out_the_query_of_an_endpoint(door: HermesDoor) -> None:
    assert create(door, name="queried", endpoint="http://shop.example/in?key=audit-secret").status == 201
    changes = door.api.call("GET", "/api/changes?limit=1000", headers={"authorization": "Bearer root"}).body.decode()
    assert "http://shop.example/in?…" in changes and "audit-secret" not in changes


def test_t25_a_password_leaves_the_endpoint_and_is_kept(door: HermesDoor) -> None:
    path = door.subscribe("basic", endpoint="http://user:secret@example.com/in")
    found = door.get(path)
    assert found["endpoint"] == "http://user:*****@example.com/in"
    assert b"secret" not in door.call("GET", path).body
    assert door.call("PUT", path, {**found, "description": "other"}).status == 200
    core = door.api.call("GET", "/api/subscriptions/hermes%2Fshop.orders:basic").json["delivery"]
    assert core["url"] == "http://example.com/in" and core["credential"]["user"] == "user"
    moved = door.call("PUT", path, {"endpoint": "http://user:*****@elsewhere.example/in"})
    assert refusal(moved) == (400, "VALIDATION_ERROR") and "Subscription.endpoint" in moved.json["message"]
    assert door.call("PUT", path, {"endpoint": "http://user:new@elsewhere.example/in"}).status == 200
    assert refusal(create(door, name="bad", endpoint="http://user:*****@example.com")) == (400, "VALIDATION_ERROR")


def test_t28_and_t50_providers_and_policies_as_printed(door: HermesDoor) -> None:
    assert door.call("POST", "/oauth/providers", PROVIDER).status == 201
    assert door.get("/oauth/providers") == ["myOAuthService"]
    assert door.get("/oauth/providers/myOAuthService") == {**PROVIDER, "clientSecret": "******"}
    assert refusal(door.call("POST", "/oauth/providers", PROVIDER)) == (400, "OAUTH_PROVIDER_ALREADY_EXISTS")
    client = {"grantType": "clientCredentials", "providerName": "myOAuthService", "scope": "someScope"}
    password = {
        "grantType": "password",
        "providerName": "myOAuthService",
        "username": "someUser",
        "password": "password123",
        "scope": "someScope",
    }
    assert door.get(door.subscribe("client", oAuthPolicy=client))["oAuthPolicy"] == client
    path = door.subscribe("password", oAuthPolicy=password)
    found = door.get(path)
    assert found["oAuthPolicy"] == {**password, "password": "******"}
    assert door.call("PUT", path, {**found, "description": "x"}).status == 200
    assert b"password123" not in door.call("GET", path).body
    unknown = create(door, name="bad", oAuthPolicy={**client, "providerName": "nobody"})
    assert refusal(unknown) == (404, "OAUTH_PROVIDER_NOT_EXISTS")
    assert unknown.json["message"] == "OAuth provider nobody does not exist"
    lacking = create(door, name="bad", oAuthPolicy={**password, "password": None})
    assert "Subscription.oAuthPolicy.password must not be null" in lacking.json["message"]
    assert door.call("DELETE", "/oauth/providers/myOAuthService").status == 400
    assert door.call("PUT", "/oauth/providers/myOAuthService", {"clientSecret": "******", "requestTimeout": 2000}).status == 200
    assert door.get("/oauth/providers/myOAuthService")["requestTimeout"] == 2000
    assert refusal(door.call("PUT", "/oauth/providers/myOAuthService", {"requestTimeout": 99})) == (400, "VALIDATION_ERROR")
    assert refusal(door.call("GET", "/oauth/providers/nobody")) == (404, "OAUTH_PROVIDER_NOT_EXISTS")


def test_owners_are_texts_of_one_source(door: HermesDoor) -> None:
    assert door.get("/owners/sources") == [{"name": "Plaintext", "autocomplete": False, "deprecated": False}]
    assert door.get("/owners/sources/Plaintext/My%20Team") == {"id": "My Team", "name": "My Team"}
    assert refusal(door.call("GET", "/owners/sources/LDAP/x")) == (404, "OWNER_SOURCE_NOT_FOUND")
    assert [one["name"] for one in door.get("/topics/owner/Plaintext/My%20Team")] == door.get("/topics")
    assert door.get("/subscriptions/owner/Plaintext/nobody") == []


def test_read_only_keeps_what_is_there_from_changing(tmp_path: Path) -> None:
    with an_api(tmp_path) as api:
        door = HermesDoor(api)
        door.topic()
        assert door.call("GET", "/mode").body == b"readWrite"
        assert door.call("POST", "/mode?mode=readOnly").status == 200
        assert door.call("POST", "/groups", {"groupName": "x"}).status == 503
        assert door.get("/groups") == ["shop"]
        assert door.publish("shop.orders", b"{}").status == 201
    with an_api(tmp_path) as api:
        door = HermesDoor(api)
        assert door.call("GET", "/mode").body == b"readOnly"
        assert door.call("POST", "/mode?mode=readWrite").status == 200
        door.made("/groups", {"groupName": "x"})


def test_rights_decide_who_changes_what(tmp_path: Path) -> None:
    tokens = [
        {"name": name, "sha256": token_digest(name), "rights": rights}
        for name, rights in {"root": ["admin"], "team": ["subscribe"], "reader": ["read"]}.items()
    ]
    with an_api(tmp_path, access={"mode": "tokens", "tokens": tokens}) as api:
        HermesDoor(api, "root").topic()
        team, reader = HermesDoor(api, "team"), HermesDoor(api, "reader")
        assert refusal(team.call("POST", "/oauth/providers", PROVIDER)) == (403, "PERMISSION_DENIED")
        assert refusal(team.call("POST", "/groups", {"groupName": "x"})) == (403, "PERMISSION_DENIED")
        assert refusal(reader.call("POST", S, a_subscription())) == (403, "PERMISSION_DENIED")
        assert team.call("POST", S, a_subscription()).status == 201
        assert reader.get(S) == ["mySubscription"]
        assert refusal(HermesDoor(api, "stranger").call("GET", "/topics")) == (401, "AUTH_ERROR")


def test_what_is_not_known_is_told_as_hermes_does(door: HermesDoor) -> None:
    assert door.call("GET", "/nothing").json == {"message": "HTTP 404 Not Found", "code": "OTHER"}
    wrong = door.call("DELETE", "/topics")
    assert refusal(wrong) == (405, "OTHER") and wrong.headers["allow"] == "GET, POST"


def test_documents_of_this_door_cannot_be_changed_past_it(door: HermesDoor) -> None:
    door.subscribe("derived")
    native = door.api.call("DELETE", "/api/subscriptions/hermes%2Fshop.orders:derived")
    assert native.status in (403, 409) and b"Hermes" in native.body
    assert door.api.call("PUT", "/api/topics/hermes:shop.orders", {}).status in (403, 409)
