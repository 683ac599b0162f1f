"""`tidings hermes import`, from a file and from a running management, against a really running api part."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.api_process import ApiProcess, an_api
from tests.doors.hermes.worlds import HermesDoor, a_subscription, a_topic
from tests.hub import free_port
from tidings.cli.root import app

PROVIDER = {"name": "iris", "tokenEndpoint": "https://iris.example/t", "clientId": "a", "clientSecret": "b"}
DOCUMENTS: dict[str, list[dict[str, Any]]] = {
    "groups": [{"groupName": "shop", "supportTeam": "x"}],
    "oauthProviders": [PROVIDER],
    "topics": [a_topic(labels=[{"value": "x"}], createdAt=1.0, unheardOf=True)],
    "subscriptions": [
        a_subscription("mail", oAuthPolicy={"grantType": "clientCredentials", "providerName": "iris"}, http2Enabled=True),
        a_subscription("basic", endpoint="http://user:*****@example.com/in"),
    ],
}


@pytest.fixture
def api(tmp_path: Path) -> Iterator[ApiProcess]:
    with an_api(tmp_path / "hub") as running:
        yield running


def tidings(api: ApiProcess, *words: str) -> tuple[int, str]:
    found = CliRunner().invoke(app, [*words], env={"TIDINGS_URL": f"http://127.0.0.1:{api.port}", "COLUMNS": "200"})
    return found.exit_code, found.output


def outcomes(api: ApiProcess, *words: str) -> dict[str, str]:
    _, told = tidings(api, "--json", "hermes", "import", *words)
    return {f"{one['kind']} {one['name']}": one["outcome"] for one in json.loads(told)["results"]}


def written(tmp_path: Path, documents: Any) -> str:
    file = tmp_path / "hermes.json"
    file.write_text(json.dumps(documents))
    return str(file)


def test_a_dry_run_changes_nothing_and_tells_what_has_no_effect(api: ApiProcess, tmp_path: Path) -> None:
    code, told = tidings(api, "hermes", "import", written(tmp_path, DOCUMENTS), "--dry-run")
    assert code == 0, told
    assert "+ topic shop.orders\n    stored, without effect: labels" in told and "http2Enabled" in told
    assert "5 would be created" in told
    assert HermesDoor(api).get("/groups") == []


def test_a_file_is_imported_and_a_masked_secret_is_told(api: ApiProcess, tmp_path: Path) -> None:
    file = written(tmp_path, DOCUMENTS)
    code, told = tidings(api, "hermes", "import", file)
    assert code == 1 and "! subscription shop.orders$basic: Subscription.endpoint is masked" in told
    door = HermesDoor(api)
    assert door.get("/topics") == ["shop.orders"] and door.get("/topics/shop.orders/subscriptions") == ["mail"]
    whole = copy.deepcopy(DOCUMENTS)
    whole["subscriptions"][1]["endpoint"] = "http://user:pass@example.com/in"
    assert outcomes(api, written(tmp_path, whole)) == {
        "group shop": "same",
        "provider iris": "update",
        "topic shop.orders": "same",
        "subscription shop.orders$mail": "same",
        "subscription shop.orders$basic": "create",
    }


def test_a_running_management_is_imported(api: ApiProcess, tmp_path: Path) -> None:
    port = free_port()
    with an_api(tmp_path / "other", hermes={"port": port}) as other:
        theirs = HermesDoor(other)
        theirs.topic("shop.orders", schema='{"type": "object"}')
        theirs.topic("shop.carts")
        theirs.subscribe("mail", headers=[{"name": "Key", "value": "v"}], subscriptionPolicy={"rate": 7})
        found = outcomes(api, f"http://127.0.0.1:{port}")
    assert set(found.values()) == {"create"} and len(found) == 4
    mail = HermesDoor(api).get("/topics/shop.orders/subscriptions/mail")
    assert (mail["subscriptionPolicy"]["rate"], mail["headers"]) == (7, [{"name": "Key", "value": "v"}])
    assert HermesDoor(api).publish("shop.orders", [1]).status == 400


@pytest.mark.parametrize("text", ["{", "[]", '{"topics": 5}', '{"unknown": []}'])
def test_what_is_no_import_is_refused(api: ApiProcess, tmp_path: Path, text: str) -> None:
    (tmp_path / "bad.json").write_text(text)
    code, told = tidings(api, "hermes", "import", str(tmp_path / "bad.json"))
    assert (code == 1 and "expected" in told) or "not JSON" in told
