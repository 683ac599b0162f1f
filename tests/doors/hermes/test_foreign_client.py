"""Allegro's own Java client publishes through the door, its retries on, and no message is lost. `make foreign` builds it."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.api_process import an_api
from tests.doors.hermes.worlds import HermesDoor
from tests.hub import free_port

JARS = Path(__file__).parents[3] / ".foreign" / "hermes"
MESSAGES = 10_000

pytestmark = pytest.mark.skipif(
    not (JARS / "hermes-publisher-1.jar").exists() or shutil.which("java") is None, reason="make foreign builds the client"
)


def test_every_message_of_the_java_client_is_stored_once(tmp_path: Path) -> None:
    port = free_port()
    with an_api(tmp_path, hermes={"port": port}) as api:
        door = HermesDoor(api)
        door.topic()
        command = ["java", "-cp", f"{JARS}/*", "Publisher", f"http://127.0.0.1:{port}", "shop.orders", str(MESSAGES)]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=900, check=True)
        answered = [line.split() for line in ran.stdout.splitlines()]
        assert len(answered) == MESSAGES and {status for status, _ in answered} == {"201"}
        ids = [event["id"] for event in stored(door)]
        assert sorted(ids) == sorted(message for _, message in answered)


def stored(door: HermesDoor) -> list[dict[str, str]]:
    """Every message of the topic, as a CloudEvent."""
    answer = door.api.call("GET", f"/api/topics/hermes:shop.orders/events?limit={MESSAGES}")
    return [json.loads(line)["event"] for line in answer.body.splitlines() if b'"event"' in line]
