"""Horizon's documents and decisions on the command line, against a really running api part."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.api_process import an_api
from tidings.cli.root import app

ROVER = """
apiVersion: tcp.ei.telekom.de/v1
kind: Rover
metadata:
  name: {name}
spec:
  zone: caas
  {rest}
"""
EXPOSING = ROVER.format(name="shop", rest="exposures: [{eventType: orders.v1}]")
SUBSCRIBING = ROVER.format(name="bill", rest="subscriptions: [{eventType: orders.v1, deliveryType: sse, payloadType: data}]")
SPECIFICATION = """
apiVersion: tcp.ei.telekom.de/v1
kind: EventSpecification
metadata: {name: orders-v1}
spec: {type: orders.v1, version: 1.0.0, description: orders}
"""


class Shell:
    def __init__(self, url: str) -> None:
        self._url = url

    def __call__(self, *words: str) -> tuple[int, str, str]:
        result = CliRunner().invoke(app, [*words], env={"TIDINGS_URL": self._url, "COLUMNS": "250"})
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return result.exit_code, result.stdout, result.stderr


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    with an_api(tmp_path / "data") as api:
        yield Shell(f"http://127.0.0.1:{api.port}")


def folder_of(tmp_path: Path, **texts: str) -> str:
    folder = tmp_path / "documents"
    (folder / "deep").mkdir(parents=True)
    for name, text in texts.items():
        (folder / "deep" / f"{name}.yaml").write_text(text)
    return str(folder)


def test_a_folder_is_applied_at_once_whatever_the_order_and_shown_before(shell: Shell, tmp_path: Path) -> None:
    folder = folder_of(tmp_path, a=SUBSCRIBING, b=EXPOSING + "---" + SPECIFICATION)
    code, out, _ = shell("apply", "-f", folder, "-e", "playground", "--dry-run")
    assert code == 0 and "+ Rover hub--team--bill" in out and out.endswith("3 would change, 0 as they should be\n")
    assert "ACTIVE" in out
    assert shell("apply", folder, "-e", "playground")[1].endswith("3 changed, 0 as they should be\n")
    assert shell("apply", folder, "-e", "playground")[1].endswith("nothing changed, 3 as they should be\n")
    shown = json.loads(shell("apply", folder, "-e", "playground", "--json")[1])
    assert {one["result"] for one in shown["results"]} == {"unchanged"}


def test_what_is_wrong_is_told_with_file_and_path(shell: Shell, tmp_path: Path) -> None:
    wrong = ROVER.format(name="bill", rest="subsciptions: []")
    folder = folder_of(tmp_path, a=EXPOSING, b=wrong)
    code, out, err = shell("apply", folder)
    assert (code, out) == (1, "")
    assert "b.yaml: spec.subsciptions" in " ".join(err.split()) and "did you mean subscriptions" in " ".join(err.split())


def test_which_document_of_a_file_is_wrong_is_told(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "all.yaml").write_text(f"{EXPOSING}---{SPECIFICATION.replace('1.0.0', 'one')}")
    err = " ".join(shell("apply", str(tmp_path / "all.yaml"))[2].split())
    assert "all.yaml (document 2): spec.version: must begin with a digit" in err


def test_everything_that_is_wrong_is_told(shell: Shell, tmp_path: Path) -> None:
    entries = ", ".join(f"{{eventType: t{n}.v1, deliverytype: sse}}" for n in range(15))
    _, _, err = shell("apply", folder_of(tmp_path, a=ROVER.format(name="bill", rest=f"subscriptions: [{entries}]")))
    assert err.count("deliveryType: is missing") == 15 and "there is a member deliverytype, is it meant?" in err


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("apiVersion: tcp.ei.telekom.de/v1\nkind: Rovers\n", "wrong.yaml: kind, found 'Rovers'; expected Rover or"),
        ("a: [\n", "wrong.yaml, line 2, column 1"),
    ],
)
def test_a_file_that_is_no_document_is_told_with_the_place(shell: Shell, tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "wrong.yaml").write_text(text)
    code, _, err = shell("apply", str(tmp_path / "wrong.yaml"))
    assert code == 1 and told in err


def test_where_a_subscription_is_streamed_is_told(shell: Shell, tmp_path: Path) -> None:
    out = shell("apply", folder_of(tmp_path, a=SUBSCRIBING), "-e", "playground")[1]
    assert re.search(r"stream: http://.+/playground/horizon/sse/v1/orders\.v1/[0-9a-f]{40}\n", out)


def test_documents_of_other_kinds_do_not_mix_in_one_file_but_side_by_side(shell: Shell, tmp_path: Path) -> None:
    assert shell("apply", folder_of(tmp_path, a=EXPOSING + "---\ntopics: {x: {}}"))[0] == 1
    (tmp_path / "ours.yaml").write_text("topics: {x: {}}")
    (tmp_path / "theirs.yaml").write_text(EXPOSING)
    code, out, _ = shell("apply", str(tmp_path / "ours.yaml"), str(tmp_path / "theirs.yaml"))
    assert code == 0 and "+ topic x" in out and "+ Rover hub--team--shop" in out
    assert shell("apply")[0] == 1


def test_approvals_of_horizon_are_listed_and_decided(shell: Shell, tmp_path: Path) -> None:
    folder = folder_of(tmp_path, a=EXPOSING, b=SPECIFICATION)
    assert shell("apply", folder, "-e", "playground")[0] == 0
    (tmp_path / "other.yaml").write_text(SUBSCRIBING)
    assert shell("apply", str(tmp_path / "other.yaml"), "-e", "playground", "--team", "hub--other")[0] == 0
    listed = json.loads(shell("approvals", "list", "-e", "playground", "--json")[1])["items"]
    assert [one["subscriberId"] for one in listed] == ["hub--other--bill"]
    name = listed[0]["subscriptionId"]
    assert name in shell("approvals", "list", "--environment", "playground")[1]
    assert "is REJECTED" in shell("approvals", "reject", name, "-e", "playground", "--reason", "no")[1]
    assert "is ACTIVE" in shell("approvals", "approve", name, "-e", "playground")[1]
    assert shell("approve", name)[0] == 1
    assert shell("approvals", "--json")[0] == 0


def test_four_eyes_are_those_of_two_people(shell: Shell, tmp_path: Path) -> None:
    exposing = EXPOSING.replace("orders.v1}", "orders.v1, approval: FOUREYES}")
    assert shell("apply", folder_of(tmp_path, a=exposing, b=SPECIFICATION))[0] == 0
    (tmp_path / "other.yaml").write_text(SUBSCRIBING)
    assert shell("apply", str(tmp_path / "other.yaml"), "--team", "hub--other")[0] == 0
    name = json.loads(shell("approvals", "list", "-e", "default", "--json")[1])["items"][0]["subscriptionId"]
    for _ in range(2):
        told = shell("approve", name, "-e", "default", "--approver", "anna")[1]
        assert "is PENDING: approved by anna, and somebody else has to approve it too" in told
    assert "is ACTIVE" in shell("approve", name, "-e", "default", "--approver", "bob")[1]


def test_what_there_is_is_listed_with_states_and_reasons(shell: Shell, tmp_path: Path) -> None:
    assert "no documents in playground" in shell("rover", "list", "-e", "playground")[1]
    folder = folder_of(tmp_path, a=EXPOSING, b=SPECIFICATION, c=SUBSCRIBING.replace("orders.v1", "calls.v1"))
    assert shell("apply", folder, "-e", "playground")[0] == 0
    rovers = shell("rover", "list", "-e", "playground")[1].splitlines()
    assert rovers[0].split("  ")[0] == "application" and len(rovers) == 3
    assert rovers[1].split()[:4] == ["hub--team--bill", "caas", "0", "1"]
    assert rovers[1].endswith("  calls.v1 BLOCKED: the event type calls.v1 is not exposed")
    assert "orders-v1      orders.v1   1.0.0    hub--team--shop" in shell("specification", "list", "-e", "playground")[1]
    types = shell("event-type", "list", "-e", "playground")[1]
    assert "calls.v1    BLOCKED  (nobody)" in types and "1 BLOCKED" in types and "nobody exposes it" in types
    subscriptions = shell("subscription", "list", "-e", "playground", "--state", "BLOCKED")[1]
    assert re.search(r"BLOCKED +calls.v1 +hub--team--bill +server_sent_event +[0-9a-f]{40} +the event type", subscriptions)
    assert shell("subscription", "list", "--state", "BLOCKED")[0] == 1
    assert shell("environment", "list")[1].splitlines()[1].split() == ["playground", "2", "1", "2", "1", "BLOCKED"]
    assert json.loads(shell("environment", "list", "--json")[1])["items"][0]["environment"] == "playground"


def test_apply_tells_what_happens_to_others_and_that_an_environment_is_new(shell: Shell, tmp_path: Path) -> None:
    told = shell("apply", folder_of(tmp_path, a=EXPOSING, b=SPECIFICATION, c=SUBSCRIBING), "-e", "playground")[1]
    assert "! the environment playground is new: nobody used it before\n" in told
    (tmp_path / "fewer.yaml").write_text(ROVER.format(name="shop", rest="exposures: []"))
    sentence = "the event type orders.v1 is not exposed"
    planned = shell("apply", str(tmp_path / "fewer.yaml"), "-e", "playground", "--dry-run")[1]
    assert f"! subscription of hub--team--bill to orders.v1 would become BLOCKED: {sentence}\n" in planned
    done = shell("apply", str(tmp_path / "fewer.yaml"), "-e", "playground")[1]
    assert f"! subscription of hub--team--bill to orders.v1 becomes BLOCKED: {sentence}\n" in done
