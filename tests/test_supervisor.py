"""The supervisor with tiny real processes in the place of the parts."""

from __future__ import annotations

import asyncio
import io
import json
import os
import signal
import subprocess
import sys
import textwrap
from contextlib import suppress
from pathlib import Path

import pytest

from tests.polling import until_async
from tidings.config import Seconds, ServeSettings
from tidings.observe.part_status import read_faces
from tidings.serve.child_process import PartCommand
from tidings.serve.exit_codes import DONE, MISCONFIGURED
from tidings.serve.lifeline import session_members
from tidings.serve.restarts import Death, GiveUp, RestartIn, after_death
from tidings.serve.supervisor import Supervisor
from tidings.serve.terminal import Terminal

READY = """
    import os, signal, sys, time
    from pathlib import Path
    from tidings.observe.part_status import PartStatus
    board = PartStatus(Path(sys.argv[1]), sys.argv[2]); board.ready(); board.flush()
    notes = Path(sys.argv[1]) / "notes"
    def note(word):
        with notes.open("a") as file: file.write(f"{sys.argv[2]} {word}\\n")
"""
"""The beginning of a fake part: it says that it is ready, and can note what happens to it."""

POLITE = (
    READY
    + """
    def end(*_): note("stopped"); sys.exit(0)
    signal.signal(signal.SIGTERM, end)
    note("started")
    print("hello from", sys.argv[2], flush=True)
    while True: time.sleep(0.01)
"""
)

STUBBORN = (
    READY
    + """
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    note("started")
    while True: time.sleep(1)
"""
)


def settings(*, first: float = 0.02, most: float = 0.1, reset: float = 60, stop: float = 10) -> ServeSettings:
    return ServeSettings(Seconds(first), Seconds(most), Seconds(reset), Seconds(stop))


def a_part(folder: Path, name: str, body: str = POLITE, stage: int = 0) -> PartCommand:
    return PartCommand(name, (sys.executable, "-c", textwrap.dedent(body), str(folder), name), stage)


def notes(folder: Path) -> list[str]:
    path = folder / "notes"
    return path.read_text().splitlines() if path.exists() else []


def gone(pid: int) -> bool:
    """Whether a process has ended; one that nobody has reaped yet counts as ended."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    return True


class World:
    """A supervisor over fake parts, running in this process."""

    def __init__(self, folder: Path, parts: list[PartCommand], chosen: ServeSettings) -> None:
        self.out = io.StringIO()
        self.terminal = Terminal(self.out)
        self.supervisor = Supervisor(parts, chosen, lambda: read_faces(folder), self.terminal)
        self.stop, self.hurry, self.ready = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.running = asyncio.create_task(self.supervisor.run(self.stop, self.hurry, self.ready.set))

    async def end(self) -> int:
        self.stop.set()
        return await asyncio.wait_for(self.running, 30)


def test_parts_start_and_stop_by_stage(tmp_path: Path) -> None:
    async def scene() -> None:
        parts = [a_part(tmp_path, "deliver", stage=1), a_part(tmp_path, "api", stage=0)]
        world = World(tmp_path, parts, settings())
        await until_async(world.ready.is_set)
        assert await world.end() == DONE
        assert notes(tmp_path) == ["api started", "deliver started", "api stopped", "deliver stopped"]

    asyncio.run(scene())


def test_lines_of_a_part_carry_its_name(tmp_path: Path) -> None:
    async def scene() -> None:
        world = World(tmp_path, [a_part(tmp_path, "api")], settings())
        await until_async(lambda: "hello" in world.out.getvalue())
        await world.end()
        assert "api      │ hello from api\n" in world.out.getvalue()

    asyncio.run(scene())


def test_a_killed_part_is_started_again(tmp_path: Path) -> None:
    async def scene() -> None:
        world = World(tmp_path, [a_part(tmp_path, "api")], settings())
        for life in range(1, 4):
            await until_async(lambda life=life: notes(tmp_path).count("api started") == life)
            os.kill(read_faces(tmp_path)["api"].pid, signal.SIGKILL)
        await until_async(lambda: notes(tmp_path).count("api started") == 4)
        assert world.supervisor.restarts == {"api": 3}
        assert await world.end() == DONE

    asyncio.run(scene())


def test_what_a_dead_part_left_behind_is_killed_before_it_starts_again(tmp_path: Path) -> None:
    """Like Spark's JVM and its workers, which have process groups of their own."""
    body = POLITE.replace(
        'note("started")',
        """import subprocess
    left = subprocess.Popen([sys.executable, "-c", "import os, time; os.setpgid(0, 0); time.sleep(600)"])
    note(left.pid)""",
    )

    async def scene() -> None:
        world = World(tmp_path, [a_part(tmp_path, "pipeline", body)], settings())
        await until_async(lambda: len(notes(tmp_path)) == 1)
        os.kill(read_faces(tmp_path)["pipeline"].pid, signal.SIGKILL)
        await until_async(lambda: len(notes(tmp_path)) == 2)
        first = int(notes(tmp_path)[0].split()[1])
        await until_async(lambda: gone(first))
        await world.end()
        await until_async(lambda: gone(int(notes(tmp_path)[1].split()[1])))

    asyncio.run(scene())


def test_a_part_that_refuses_to_start_stops_the_hub(tmp_path: Path) -> None:
    async def scene() -> None:
        parts = [a_part(tmp_path, "api"), a_part(tmp_path, "deliver", "raise SystemExit(2)", stage=1)]
        world = World(tmp_path, parts, settings())
        assert await asyncio.wait_for(world.running, 30) == MISCONFIGURED
        assert notes(tmp_path) == ["api started", "api stopped"]

    asyncio.run(scene())


def test_a_part_that_does_not_stop_in_time_is_killed(tmp_path: Path) -> None:
    async def scene() -> None:
        world = World(tmp_path, [a_part(tmp_path, "api", STUBBORN)], settings(stop=0.2))
        await until_async(world.ready.is_set)
        pid = read_faces(tmp_path)["api"].pid
        assert await world.end() == DONE
        assert gone(pid)

    asyncio.run(scene())


def test_a_second_wish_to_stop_does_not_wait(tmp_path: Path) -> None:
    async def scene() -> None:
        world = World(tmp_path, [a_part(tmp_path, "api", STUBBORN)], settings(stop=3600))
        await until_async(world.ready.is_set)
        world.hurry.set()
        assert await world.end() == DONE

    asyncio.run(scene())


def test_stopping_while_a_part_waits_to_be_started_again_is_immediate(tmp_path: Path) -> None:
    async def scene() -> None:
        world = World(tmp_path, [a_part(tmp_path, "api", "raise SystemExit(1)")], settings(first=3600, most=3600))
        await until_async(lambda: world.supervisor.restarts["api"] == 1)
        assert await world.end() == DONE

    asyncio.run(scene())


SUPERVISOR = """
    import asyncio, sys
    from pathlib import Path
    from tidings.config import ServeSettings
    from tidings.serve.child_process import PartCommand
    from tidings.serve.supervisor import Supervisor
    from tidings.serve.terminal import Terminal

    async def main():
        part = PartCommand("pipeline", (sys.executable, "-c", sys.argv[2], sys.argv[1], "pipeline", "{lifeline}"))
        supervisor = Supervisor([part], ServeSettings(0.1, 1, 10, 5), dict, Terminal())
        await supervisor.run(asyncio.Event(), asyncio.Event(), lambda: None)

    asyncio.run(main())
"""

GUARDED = (
    READY
    + """
    import subprocess
    from tidings.serve import lifeline
    lifeline.hold(int(sys.argv[3]), lifeline.end_session)
    if {alone}: lifeline.die_with_parent(os.getppid())
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    left = 0 if {alone} else subprocess.Popen([sys.executable, "-c", "import os, time; os.setpgid(0, 0); time.sleep(600)"]).pid
    note(left)
    while True: time.sleep(1)
"""
)


@pytest.mark.parametrize("alone", [True, False], ids=["a part without descendants", "a part with descendants"])
def test_everything_ends_when_the_supervisor_is_killed(tmp_path: Path, alone: bool) -> None:
    body = textwrap.dedent(GUARDED).replace("{alone}", str(alone))
    supervisor = subprocess.Popen([sys.executable, "-c", textwrap.dedent(SUPERVISOR), str(tmp_path), body])

    async def scene() -> None:
        await until_async(lambda: notes(tmp_path))
        child = read_faces(tmp_path)["pipeline"].pid
        left = int(notes(tmp_path)[0].split()[1])
        supervisor.kill()
        supervisor.wait()
        await until_async(lambda: gone(child) and (alone or gone(left)))
        assert not list(session_members(child))

    asyncio.run(scene())


class TestAfterDeath:
    def test_waits_double_up_to_the_longest(self) -> None:
        waits, row = [], 0
        for _ in range(6):
            verdict = after_death(Death(1, None), row, False, settings(first=0.5, most=5))
            assert isinstance(verdict, RestartIn)
            waits, row = [*waits, verdict.seconds], verdict.row
        assert waits == [0.5, 1, 2, 4, 5, 5]

    def test_a_stable_time_begins_anew(self) -> None:
        assert after_death(Death(-9, 61), 7, True, settings(first=0.5, most=60, reset=60)) == RestartIn(0.5, 1)

    def test_a_short_time_does_not(self) -> None:
        assert after_death(Death(-9, 59), 3, True, settings(first=0.5, most=60, reset=60)) == RestartIn(4, 4)

    def test_a_refusal_at_the_first_start_is_final(self) -> None:
        assert after_death(Death(2, None), 0, False, settings()) == GiveUp()

    def test_a_refusal_of_a_part_that_worked_before_is_not(self) -> None:
        assert isinstance(after_death(Death(2, None), 0, True, settings()), RestartIn)


class TestTerminal:
    def test_a_stuck_output_drops_lines_instead_of_stopping_the_parts(self) -> None:
        reader, writer = os.pipe()
        terminal = Terminal(os.fdopen(writer, "w"))
        for n in range(30_000):
            terminal.line("api", f"{n} {'x' * 100}")
        received = []
        with os.fdopen(reader) as source:
            for line in source:
                received.append(line)
                if "were dropped" in line:
                    break
        assert received[0].startswith("api      │ 0 x")

    def test_a_closed_output_is_no_reason_to_stop(self) -> None:
        reader, writer = os.pipe()
        os.close(reader)
        out = os.fdopen(writer, "w")
        terminal = Terminal(out)
        for n in range(20_000):
            terminal.line("api", str(n))
        terminal.close()
        with suppress(BrokenPipeError):
            out.close()

    def test_in_json_foreign_lines_are_wrapped(self) -> None:
        out = io.StringIO()
        terminal = Terminal(out, as_json=True)
        terminal.line("pipeline", '{"part": "pipeline", "message": "ours"}')
        terminal.line("pipeline", "WARNING: something of the JVM")
        terminal.close()
        lines = [json.loads(line) for line in out.getvalue().splitlines()]
        assert [line["message"] for line in lines] == ["ours", "WARNING: something of the JVM"]
