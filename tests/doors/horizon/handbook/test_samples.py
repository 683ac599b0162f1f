"""The samples of the Horizon handbook, read from it at test time: HOR-T47, and what its filters do to its events."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterator
from typing import Any

import pytest

from tests.api_process import ApiProcess, an_api
from tests.conformance import SHARED_DATA
from tests.doors.horizon.worlds import Door, violations
from tidings import filters
from tidings.doors.horizon.documents.apply_plan import given
from tidings.doors.horizon.documents.request_body import documents_in
from tidings.doors.horizon.documents.rovers import Rover
from tidings.doors.horizon.documents.settings import DocumentSettings
from tidings.doors.horizon.names import Team
from tidings.events.model import Event
from tidings.filters.projection import project, projection

SEEDS = SHARED_DATA.parent / "seeds"
HANDBOOK = next(iter(SEEDS.glob("000*")), None)

pytestmark = pytest.mark.skipif(HANDBOOK is None, reason=f"the handbook is not in {SEEDS}")

HEAD = "apiVersion: tcp.ei.telekom.de/v1\nkind: Rover\nmetadata:\n  name: sample\n"
LEFT_OUT = "{indent}deliveryType: callback\n{indent}payloadType: data\n{indent}callback: https://foo.telekom.de/callback\n"


def blocks(kind: str) -> list[str]:
    """The code blocks of this kind, as printed."""
    if HANDBOOK is None:
        return []
    text = HANDBOOK.read_text("utf-8")
    return [textwrap.dedent(found[1]) for found in re.finditer(rf"(?ms)^[ ]*``` ?{kind}\n(.*?)^[ ]*```", text)]


def is_complete(text: str) -> bool:
    return "apiVersion" in text and "[...]" not in text


def completed(text: str) -> str:
    """A fragment of a rover.yaml, with what it leaves out."""
    whole = re.sub(r"(?m)^( +)\[\.\.\.\]\n", lambda found: LEFT_OUT.format(indent=found[1]), text)
    return whole.replace("[...]\n", HEAD)


COMPLETE = [text for text in blocks("yaml") if is_complete(text) and "subsciptions" not in text]
MISPRINTED = [text for text in blocks("yaml") if "subsciptions" in text]
FRAGMENTS = [completed(text) for text in blocks("yaml") if text.startswith("[...]")]
TRIGGERS = [text for text in blocks("yaml") if text.startswith("trigger:")]


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiProcess]:
    with an_api(tmp_path_factory.mktemp("api")) as running:
        yield running


def applied(door: Door, text: str) -> Any:
    path = f"/horizon/rover/v1/{door.environment}/apply"
    return door.call("POST", path, text.encode(), {"content-type": "application/yaml"})


def test_the_handbook_is_read_as_it_is_meant() -> None:
    assert (len(COMPLETE), len(MISPRINTED), len(FRAGMENTS), len(TRIGGERS)) == (8, 1, 3, 2)


@pytest.mark.parametrize("number", range(8))
def test_hor_t47_every_complete_document_is_accepted_and_shown_with_all_its_fields(api: ApiProcess, number: int) -> None:
    door = Door(api, environment=f"single-{number}")
    answer = applied(door, COMPLETE[number])
    assert answer.status == 200, answer.body
    (written,) = documents_in(COMPLETE[number].encode(), json=False)
    place = f"{written['kind']}/{written['metadata']['name']}"
    shown = door.call("GET", f"/horizon/rover/v1/{door.environment}/{place}").json
    assert {key: shown[key] for key in written} == written


def test_hor_t47_all_documents_as_one_text(api: ApiProcess) -> None:
    door = Door(api, environment="together")
    newest = {
        (one["kind"], one["metadata"]["name"]): text for text in COMPLETE for one in documents_in(text.encode(), json=False)
    }
    answer = applied(door, "\n---\n".join(newest.values()))
    assert answer.status == 200, answer.body
    states = {part["eventType"]: part["state"] for one in answer.json["results"] for part in one["parts"]}
    assert states["order.check.v1"] == "ACTIVE"


@pytest.mark.parametrize("number", range(3))
def test_hor_t47_corrected_fragments_are_accepted(api: ApiProcess, number: int) -> None:
    answer = applied(Door(api, environment=f"fragment-{number}"), FRAGMENTS[number])
    assert answer.status == 200, answer.body


def test_hor_t47_the_misprinted_one_is_refused_with_a_hint_and_accepted_when_corrected(api: ApiProcess) -> None:
    door = Door(api, environment="misprinted")
    refused = applied(door, MISPRINTED[0])
    assert refused.status == 400 and "subscriptions" in violations(refused)["spec.subsciptions"]
    provider = next(text for text in COMPLETE if "device-orders" in text)
    assert applied(door, provider).status == 200
    spelled = MISPRINTED[0].replace("subsciptions", "subscriptions")
    assert "device-orders" in applied(door, spelled).json["violations"][0]["reason"]
    assert applied(door, spelled.replace("- deviceorders", "- device-orders")).status == 200


def rover_of(text: str) -> Rover:
    (raw,) = documents_in(text.encode(), json=False)
    wish = given(raw, Team("hub", "team"), DocumentSettings()).wish
    assert isinstance(wish, Rover)
    return wish


def test_the_response_filter_leaves_what_the_handbook_says() -> None:
    text = next(one for one in FRAGMENTS if "responseFilter" in one)
    made = rover_of(text).subscriptions[0].trigger.projection
    assert made is not None
    event, result = (one for one in blocks("json") if '"order"' in one)
    whole = json.dumps(json.loads(event.replace("[...]", ""))).encode()
    left = project(projection(made.mode, made.paths, made.syntax), whole)
    assert left is not None
    assert json.loads(left, object_pairs_hook=list) == json.loads(result, object_pairs_hook=list)


@pytest.mark.parametrize(("number", "matches"), [(0, True), (1, False)])
def test_simple_filters_do_what_the_handbook_says(number: int, matches: bool) -> None:
    (trigger,) = documents_in(TRIGGERS[number].encode(), json=False)
    parsed = filters.parse("horizon-simple", trigger["trigger"]["selectionFilter"])
    (pets,) = (one for one in blocks("json") if '"pets"' in one)
    attributes = {"specversion": "1.0", "id": "1", "source": "/", "type": "pets.v1"}
    assert filters.matches(parsed, Event(attributes, pets.encode())) is matches
