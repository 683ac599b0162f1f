"""The HTTP scenarios and the sample events of the CloudEvents conformance project (CT-01, CT-02)."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from tests.conformance import SHARED_DATA
from tests.conformance.gherkin import Scenario, scenarios
from tests.events.requests import LIMITS, raw
from tidings.errors import InvalidEvent
from tidings.events import content_types
from tidings.events.http_binding import RawHeaders, decode, encode_binary, encode_structured
from tidings.events.stored import event_from, head_of

FOLDER = SHARED_DATA / "cloudevents_conformance"
FEATURE = FOLDER / "features" / "http-protocol-binding.feature"

pytestmark = pytest.mark.skipif(not FEATURE.exists(), reason=f"the CloudEvents conformance data is not in {FOLDER}")


def all_scenarios() -> list[Scenario]:
    return list(scenarios(FEATURE.read_text("utf-8"))) if FEATURE.exists() else []


def samples(*names: str) -> list[dict[str, Any]]:
    """The sample events of these files, every value as the text that stands there."""
    files = [FOLDER / "yaml" / name for name in names]
    return [sample for file in files if file.exists() for sample in yaml.load_all(file.read_text("utf-8"), yaml.BaseLoader)]


def attributes_of(sample: dict[str, Any]) -> dict[str, str]:
    context = dict(sample["ContextAttributes"])
    extensions = context.pop("Extensions", {})
    # A block of YAML text ends in a line break, which a header line drops and an attribute may not have.
    return {**context, **{name: value.rstrip("\n") for name, value in extensions.items()}}


def as_binary(sample: dict[str, Any]) -> tuple[RawHeaders, bytes]:
    """The request as the conformance tool sends it: values raw, Content-Type only when the sample has one."""
    attributes = attributes_of(sample)
    content_type = attributes.pop("datacontenttype", None)
    headers = [(f"ce-{name}", value) for name, value in attributes.items()]
    headers += [("content-type", content_type)] if content_type else []
    return raw(headers), sample["Data"].encode()


def as_structured(sample: dict[str, Any]) -> tuple[RawHeaders, bytes]:
    attributes = attributes_of(sample)
    data = json.loads(sample["Data"]) if content_types.is_json(attributes.get("datacontenttype")) else sample["Data"]
    body = json.dumps({**attributes, "data": data}, ensure_ascii=False).encode()
    return [(b"content-type", b"application/cloudevents+json")], body


def test_the_data_holds_the_four_http_scenarios() -> None:
    assert len(all_scenarios()) == 4


@pytest.mark.parametrize("scenario", all_scenarios(), ids=lambda scenario: scenario.title)
def test_an_http_scenario_is_read_as_listed(scenario: Scenario) -> None:
    (event,) = decode(scenario.headers, scenario.body, LIMITS)
    assert event.attributes == scenario.attributes
    assert json.loads(event.data or b"") == json.loads(scenario.data)


SAMPLES = samples("v1.yaml", "v1.0/v1_minimum.yaml")
OLD_SAMPLES = samples("v03.yaml", "v0.3/v03_minimum.yaml")


def test_the_data_holds_the_sample_events() -> None:
    assert (len(SAMPLES), len(OLD_SAMPLES)) == (8, 7)


@pytest.mark.parametrize("laid_out", [as_binary, as_structured])
@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample["ContextAttributes"]["id"])
def test_a_sample_event_goes_through_unchanged(sample: dict[str, Any], laid_out: Any) -> None:
    (event,) = decode(*laid_out(sample), LIMITS)
    assert event.attributes == attributes_of(sample)
    stored = event_from(head_of(event), event.data)
    for headers, body in (encode_binary(stored), encode_structured(stored)):
        (back,) = decode(raw(headers), body, LIMITS)
        assert attributes_of(sample).items() <= back.attributes.items()
        assert same_data(back.data, sample)


def same_data(data: bytes | None, sample: dict[str, Any]) -> bool:
    if content_types.is_json(sample["ContextAttributes"].get("datacontenttype")):
        return bool(json.loads(data or b"") == json.loads(sample["Data"]))
    return data == sample["Data"].encode()


@pytest.mark.parametrize("laid_out", [as_binary, as_structured])
@pytest.mark.parametrize("sample", OLD_SAMPLES, ids=lambda sample: sample["ContextAttributes"]["id"])
def test_events_of_version_0_3_are_refused_by_their_version(sample: dict[str, Any], laid_out: Any) -> None:
    with pytest.raises(InvalidEvent) as refused:
        decode(*laid_out(sample), LIMITS)
    assert [(fault.attribute, fault.code) for fault in refused.value.faults] == [("specversion", "bad-version")]
