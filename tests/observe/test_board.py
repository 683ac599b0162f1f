"""Boards: what a part says of itself, and that it still says anything."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import msgspec
import pytest

from tests.polling import until
from tidings.observe import part_status as boards
from tidings.observe.part_status import SILENT, PartState, PartStatus, read_faces


def test_a_part_that_was_silent_for_long_is_not_ready(tmp_path: Path) -> None:
    board = PartStatus(tmp_path, "pipeline")
    board.ready()
    board.flush()
    assert read_faces(tmp_path)["pipeline"].ready
    face = msgspec.json.decode((tmp_path / "pipeline.json").read_bytes(), type=PartState)
    for beat in (time.monotonic() - SILENT - 5, time.monotonic() + 1000):
        (tmp_path / "pipeline.json").write_bytes(msgspec.json.encode(msgspec.structs.replace(face, beat=beat)))
        found = read_faces(tmp_path)["pipeline"]
        assert (found.ready, "hangs or was stopped" in found.reason) == (False, True)


def test_a_flush_renews_the_beat_now_and_then_although_nothing_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    board = PartStatus(tmp_path, "api")
    board.flush()
    first = read_faces(tmp_path)["api"].beat
    board.flush()
    assert read_faces(tmp_path)["api"].beat == first
    monkeypatch.setattr(boards, "BEAT", 0.0)
    board.flush()
    assert read_faces(tmp_path)["api"].beat > first


BEATING = """
    import sys, time
    from pathlib import Path
    from tidings.observe import part_status as boards
    boards.BEAT = 0.05
    board = boards.PartStatus(Path(sys.argv[1]), "deliver"); board.ready()
    while True:
        board.flush()
        time.sleep(0.02)
"""


def test_a_stopped_process_is_seen_and_so_is_that_it_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boards, "SILENT", 1.0)
    process = subprocess.Popen([sys.executable, "-c", textwrap.dedent(BEATING), str(tmp_path)])
    try:
        wait(tmp_path, ready=True)
        os.kill(process.pid, signal.SIGSTOP)
        wait(tmp_path, ready=False)
        os.kill(process.pid, signal.SIGCONT)
        wait(tmp_path, ready=True)
    finally:
        process.kill()
        process.wait()


def wait(folder: Path, *, ready: bool) -> None:
    def shown() -> bool:
        face = read_faces(folder).get("deliver")
        return face is not None and face.ready == ready

    until(shown, f"ready is {ready}")
