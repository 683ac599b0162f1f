"""What docs/horizon.md says of scopes and of administrators, as far as no other test holds it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.api_process import an_api
from tests.doors.horizon.worlds import Door, a_rover, a_specification, a_stream, exposing, tokens
from tidings.doors.horizon.names import subscription_id

OWNER, OTHER = "hub--team--shop", "hub--other--bill"
DEVICES = {"eq": {"field": "type", "value": "DEVICE"}}
SCOPES = [
    {"name": "devices", "trigger": {"advancedSelectionFilter": DEVICES}},
    {"name": "ids", "trigger": {"responseFilter": ["orderId"]}},
]


def test_several_scopes_narrow_each_other_and_the_rest_holds_when_one_is_given_up(tmp_path: Path) -> None:
    with an_api(tmp_path) as api:
        door = Door(api)
        door.applied(exposing(scopes=SCOPES), a_specification())

        def applied(*names: str) -> Any:
            (part,) = door.parts(a_rover("bill", subscriptions=[a_stream(scopes=list(names))]))
            shown = door.call("GET", f"/horizon/v1/playground/subscriptions/{part['subscriptionId']}").json
            return shown["publisherTrigger"]

        both = applied("devices", "ids")
        assert (both["advancedSelectionFilter"], both["responseFilter"]) == (DEVICES, ["orderId"])
        assert applied("devices") == {"advancedSelectionFilter": DEVICES}


def test_an_administrator_manages_everything_and_reads_nobodys_stream_or_payload(tmp_path: Path) -> None:
    with an_api(tmp_path, access=tokens(OWNER, OTHER)) as api:
        root, subscription = Door(api, "root"), subscription_id("playground", "orders.v1", OTHER)
        Door(api, OWNER).applied(exposing(), a_specification())
        Door(api, OTHER).applied(a_rover("bill", subscriptions=[a_stream()]))
        assert root.decide(subscription, "APPROVE").status == 200
        assert root.call("GET", f"/horizon/v1/playground/subscriptions/{subscription}/events").status == 200
        changed = root.apply(a_rover("bill", subscriptions=[]), query="?team=hub--other&dryRun=true")
        assert changed.json["results"][0]["clientId"] == OTHER
        message = "6f1c0d5e-2a4b-8c11-9a52-0f6f3b7f9d10"
        for path in (f"sse/{subscription}", f"data/{subscription}/{message}"):
            assert root.call("GET", f"/horizon/v1/playground/{path}").status == 403
