from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.api_process import ApiProcess, an_api

TO = "http://127.0.0.1:9/in"
HUB: dict[str, Any] = {
    "topics": {"orders": {"retention": "1d"}, "payments": None},
    "exposures": [{"topic": "payments", "approval": "manual"}],
    "subscriptions": [{"name": "billing", "topics": ["orders", "payments"], "to": TO}],
}


def steps(api: ApiProcess, document: dict[str, Any], **query: object) -> list[tuple[str, str, str]]:
    answer = api.call("POST", "/api/apply", document, **query)
    assert answer.status == 200, answer.body
    return [(step["action"], step["kind"], step["name"]) for step in answer.json["steps"]]


def test_a_document_is_applied_in_one_revision_and_a_second_time_changes_nothing(tmp_path: Path) -> None:
    with an_api(tmp_path) as api:
        assert steps(api, HUB) == [
            ("create", "topic", "orders"),
            ("create", "topic", "payments"),
            ("create", "exposure", "payments"),
            ("create", "subscription", "billing"),
        ]
        assert {change["revision"] for change in api.call("GET", "/api/changes").json["changes"]} == {1}
        again = api.call("POST", "/api/apply", HUB).json
        assert (again["steps"], again["unchanged"], again["revision"]) == ([], 4, 1)


def test_a_dry_run_shows_the_difference_and_changes_nothing(tmp_path: Path) -> None:
    with an_api(tmp_path) as api:
        steps(api, HUB)
        changed = {"topics": {"orders": {"retention": "2d"}, "new": {}}}
        answer = api.call("POST", "/api/apply?dryRun=true", changed).json
        assert answer["steps"][0]["changes"] == {"retention": [86400.0, 172800.0]}
        assert (answer["dryRun"], answer["revision"], answer["steps"][1]["name"]) == (True, 1, "new")
        assert api.call("GET", "/api/topics/new").status == 404


def test_a_dry_run_finds_the_same_faults(tmp_path: Path) -> None:
    with an_api(tmp_path) as api:
        bad = {"topics": {"a": {"schema": {"type": "nothing"}}}}
        assert api.call("POST", "/api/apply?dryRun=true", bad).status == 400


def test_one_bad_document_changes_nothing_at_all(tmp_path: Path) -> None:
    with an_api(tmp_path) as api:
        bad = {**HUB, "subscriptions": [{"name": "billing", "topic": "nowhere", "to": TO}]}
        refused = api.call("POST", "/api/apply", bad)
        assert (refused.status, refused.json["code"]) == (400, "invalid-document")
        assert api.call("GET", "/api/topics").json == {"topics": []}


def test_nothing_is_deleted_unless_asked_for_and_only_of_the_kinds_named(tmp_path: Path) -> None:
    with an_api(tmp_path) as api:
        steps(api, HUB)
        assert steps(api, {"topics": {"orders": {"retention": "1d"}}}) == []
        assert steps(api, {"subscriptions": [], "prune": True}) == [("delete", "subscription", "billing")]
        assert steps(api, {"topics": {"orders": {"retention": "1d"}}, "prune": True}) == [("delete", "topic", "payments")]
        assert [one["name"] for one in api.call("GET", "/api/topics").json["topics"]] == ["orders"]


def test_pruning_everything_takes_topics_and_their_subscriptions_in_one_revision(tmp_path: Path) -> None:
    with an_api(tmp_path) as api:
        steps(api, HUB)
        assert len(steps(api, {"topics": [], "exposures": [], "subscriptions": [], "prune": True})) == 4 - 1
        assert api.call("GET", "/api/status").json["topics"] == 0
        ended = api.call("GET", "/api/changes", after=1).json["changes"]
        assert [(one["revision"], one["action"], one["kind"]) for one in ended] == [
            (2, "delete", "subscription"),
            (2, "delete", "topic"),
            (2, "delete", "topic"),
            (2, "delete", "exposure"),
            (2, "delete", "approval"),
        ]


def test_new_topics_and_pruned_ones_change_hands_in_one_revision(tmp_path: Path) -> None:
    with an_api(tmp_path) as api:
        steps(api, HUB)
        billing = {"name": "billing", "topic": "new", "to": TO}
        applied = api.call("POST", "/api/apply", {"topics": {"new": {}}, "subscriptions": [billing], "prune": True}).json
        assert [(step["action"], step["name"]) for step in applied["steps"]] == [
            ("create", "new"),
            ("update", "billing"),
            ("delete", "orders"),
            ("delete", "payments"),
        ]
        assert applied["revision"] == 2


def test_a_pruning_that_is_refused_leaves_everything_as_it_was(tmp_path: Path) -> None:
    with an_api(tmp_path) as api:
        steps(api, HUB)
        wanted = {"topics": {"orders": {"retention": "1d"}, "new": {}}, "prune": True}
        for query in ("", "?dryRun=true"):
            refused = api.call("POST", f"/api/apply{query}", wanted)
            assert (refused.status, refused.json["code"]) == (409, "conflict")
            assert "the topic payments has subscriptions: billing" in refused.json["detail"]
        assert [one["name"] for one in api.call("GET", "/api/topics").json["topics"]] == ["orders", "payments"]
        assert {change["revision"] for change in api.call("GET", "/api/changes").json["changes"]} == {1}


def test_unknown_members_are_refused_wherever_they_stand(tmp_path: Path) -> None:
    with an_api(tmp_path) as api:
        for bad, place in (
            ({"topic": {}}, ""),
            ({"topics": {"a": {"retenton": 1}}}, "topics[0]"),
            ({"subscriptions": [{"topic": "a", "too": TO}]}, "subscriptions[0]"),
        ):
            answer = api.call("POST", "/api/apply", bad)
            assert (answer.status, answer.json["errors"][0]["attribute"]) == (400, place)
            assert "did you mean" in answer.json["detail"]


def test_a_document_without_a_name_is_refused(tmp_path: Path) -> None:
    with an_api(tmp_path) as api:
        assert api.call("POST", "/api/apply", {"topics": [{"retention": 60}]}).status == 400


def test_a_topic_with_an_avro_schema_is_applied_once_and_its_next_version_is_a_difference(tmp_path: Path) -> None:
    def topic(*names: str) -> dict[str, Any]:
        fields = [{"name": name, "type": "int", "default": 0} for name in names]
        return {"topics": {"orders": {"avro": {"schema": {"type": "record", "name": "R", "fields": fields}}}}}

    with an_api(tmp_path) as api:
        assert steps(api, topic("a")) == [("create", "topic", "orders")]
        assert steps(api, topic("a")) == []
        assert steps(api, topic("a", "b")) == [("update", "topic", "orders")]
        assert api.call("GET", "/api/topics/orders").json["avro"]["version"] == 2
        assert steps(api, topic("a", "b")) == []
