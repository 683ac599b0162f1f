"""A hub whose processes are stopped and whose files are taken away."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.hub import Hub
from tests.polling import until
from tests.test_supervisor import gone
from tidings.serve.lifeline import session_members

pytestmark = [pytest.mark.hub, pytest.mark.spark]


def test_stopped_parts_are_seen_the_port_stays_ours_and_lost_files_are_missed(tmp_path: Path) -> None:
    hub = Hub(tmp_path / "data")
    try:
        hub.start().wait_ready()
        assert hub.call("PUT", "/api/topics/orders", {}).status == 201
        assert hub.call("POST", "/api/topics/orders/events", {"n": 1}).status == 202
        hub.until(lambda: hub.call("GET", "/api/status").json["lag"]["routing"]["events"] == 0, 60, "it is routed")

        unsafe = [pid for pid in _python_processes(hub) if b"PYTHONSAFEPATH=1" not in _environ(pid)]
        assert unsafe == []

        stopped = [hub.child("deliver"), _java(hub)]
        for pid in stopped:
            assert pid is not None
            os.kill(pid, signal.SIGSTOP)
        for part in ("deliver", "pipeline"):
            hub.until(lambda part=part: "hangs or was stopped" in _reason(hub, part), 60, f"the stopped {part} is seen")
        for pid in stopped:
            assert pid is not None
            os.kill(pid, signal.SIGCONT)
        hub.wait_ready()

        answers: list[int] = []
        assert hub.kill("api")
        asking = [threading.Thread(target=lambda: answers.append(hub.call("GET", "/health/live").status)) for _ in range(5)]
        for one in asking:
            one.start()
        for one in asking:
            one.join(30)
        assert answers == [200] * 5, "nobody was refused while the api was away"
        hub.wait_ready()
    finally:
        hub.stop()

    for path in hub.data.glob("log.db*"):
        path.unlink()
    command = [sys.executable, "-m", "tidings.cli", "serve", "--data", str(hub.data), "--port", "0"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert ended.returncode == 2
    assert "log.db is missing or empty" in ended.stderr and "tidings renew-log" in ended.stderr
    renewed = subprocess.run(
        [*command[:3], "renew-log", "--data", str(hub.data)], capture_output=True, timeout=240, check=False
    )
    assert renewed.returncode == 0
    try:
        hub.start().wait_live()
        assert hub.call("POST", "/api/topics/orders/events", {"n": 2}).status == 202
        hub.wait_ready()
        hub.until(lambda: hub.call("GET", "/api/status").json["lag"]["routing"]["events"] == 0, 60, "it is routed")

        driver = hub.child("pipeline")
        assert driver is not None
        workers = [pid for pid in session_members(driver) if pid != driver]
        assert len(workers) >= 2, "the JVM and Spark's workers"
        os.kill(hub.pid, signal.SIGSTOP)
        os.kill(driver, signal.SIGKILL)
        hub.kill("supervisor")

        def left() -> list[bytes]:
            return [Path(f"/proc/{pid}/cmdline").read_bytes() for pid in workers if not gone(pid)]

        until(lambda: all(gone(pid) for pid in workers), lambda: f"still there: {left()}", within=10)
    finally:
        hub.stop()


def _reason(hub: Hub, part: str) -> str:
    answer = hub.call("GET", "/health/ready")
    return str(answer.json["parts"][part]["reason"])


def _environ(pid: int) -> bytes:
    return Path(f"/proc/{pid}/environ").read_bytes()


def _python_processes(hub: Hub) -> list[int]:
    """All parts, and what Spark started."""
    sessions = [pid for part in ("api", "pipeline", "deliver") if (pid := hub.child(part)) is not None]
    assert len(sessions) == 3
    found = [pid for session in sessions for pid in session_members(session)]
    return [pid for pid in found if b"python" in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0]]


def _java(hub: Hub) -> int | None:
    session = hub.child("pipeline") or 0
    return next((pid for pid in session_members(session) if b"java" in Path(f"/proc/{pid}/cmdline").read_bytes()[:200]), None)
