"""The parts as processes: what they import, whom they let read, and how their port and output are given to them."""

from __future__ import annotations

import asyncio
import errno
import http.client
import json
import os
import signal
import socket
import stat
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.hub import free_port
from tests.polling import until, until_async
from tests.test_supervisor import World, settings
from tidings import config
from tidings.config import Settings
from tidings.java import Java
from tidings.serve import folder, hub
from tidings.serve.child_process import PartCommand
from tidings.serve.part_commands import outside_reason
from tidings.server.listeners import bound, close_all

WORDS = "this file was imported from the working directory"


def a_jwt_lies_in(place: Path) -> Path:
    """A module that the api imports, with the name of a foreign one, in the folder it is started in."""
    (place / "jwt.py").write_text(f"from pathlib import Path\nPath({str(place / 'imported')!r}).write_text({WORDS!r})\n")
    return place / "imported"


def api_settings(data: Path) -> Settings:
    flags = {"data": str(data), "server": {"port": free_port()}, "push": {"dead_letter_events": False}}
    return config.load(environ={}, flags=flags)


def api_part(chosen: Settings, sockets: list[socket.socket]) -> PartCommand:
    made = hub._parts(chosen, Java(Path("/nowhere"), 21, True), "text", None, sockets)
    return next(part for part in made if part.name == "api")


@contextmanager
def a_running_api(chosen: Settings, cwd: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The api as the supervisor starts it; this test is the supervisor."""
    folder.prepare(chosen.data)
    ours, held = os.pipe()
    sockets = bound(chosen)
    with folder.held(chosen.data):
        part = api_part(chosen, sockets)
        command = [word.replace("{lifeline}", str(ours)) for word in part.command]
        environ = {**os.environ, **(part.environ or {})}
        process = subprocess.Popen(command, cwd=cwd, env=environ, pass_fds=(ours, *part.sockets))
        try:
            yield process
        finally:
            process.terminate()
            process.wait(30)
            os.close(held)
            os.close(ours)
            close_all(sockets)


def ask(port: int, method: str, path: str) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=240)
    try:
        connection.request(method, path, json.dumps({}), {"content-type": "application/json"})
        return connection.getresponse().status
    finally:
        connection.close()


def test_the_api_imports_nothing_from_the_folder_it_is_started_in_and_its_files_are_private(tmp_path: Path) -> None:
    data, cwd = tmp_path / "data", tmp_path / "cwd"
    data.mkdir(mode=0o755)
    cwd.mkdir()
    imported = a_jwt_lies_in(cwd)
    chosen = api_settings(data)
    with a_running_api(chosen, cwd):
        # The supervisor's socket listens already: whoever asks now waits until the api is there.
        assert ask(chosen.server.port, "PUT", "/api/topics/orders") == 201
        assert not imported.exists()
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (data, *data.iterdir(), *(data / "run").iterdir())}
    assert {"log.db", "log.db-wal", "registry.db", "cursorsets.db", "duplicates.db", "hub.key", "version.json"} <= modes.keys()
    assert {name: oct(mode) for name, mode in modes.items() if mode & 0o077} == {}


def test_files_of_an_older_hub_become_private_at_the_start(tmp_path: Path) -> None:
    folder.prepare(tmp_path)
    (tmp_path / "log.db").touch()
    for path in (tmp_path, tmp_path / "run"):
        path.chmod(0o755)
    (tmp_path / "log.db").chmod(0o644)
    folder.prepare(tmp_path)
    assert [stat.S_IMODE(path.stat().st_mode) for path in (tmp_path, tmp_path / "run", tmp_path / "log.db")] == [
        0o700,
        0o700,
        0o600,
    ]


def test_the_copy_of_the_settings_is_private_and_the_version_is_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []
    real = os.fsync

    def noted(descriptor: int) -> None:
        synced.append(Path(f"/proc/self/fd/{descriptor}").readlink().name)
        real(descriptor)

    monkeypatch.setattr(os, "fsync", noted)
    folder.prepare(tmp_path / "data")
    assert synced == ["version.json.new", "data"]
    given = tmp_path / "hub.toml"
    given.write_text('[access]\nkey = "secret"\n')
    (tmp_path / "data" / "run" / "config.toml").touch(0o644)
    copy = hub._kept(given, config.load(environ={}, flags={"data": str(tmp_path / "data")}))
    assert copy is not None and copy.read_text() == given.read_text()
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600


def test_doors_with_ports_of_their_own_get_sockets_too(tmp_path: Path) -> None:
    chosen = config.load(environ={}, flags={"data": str(tmp_path), "server": {"port": 0}, "horizon": {"port": free_port()}})
    sockets = bound(chosen)
    try:
        part = api_part(chosen, sockets)
        assert part.sockets == tuple(one.fileno() for one in sockets) and len(sockets) == 2
        assert ",".join(map(str, part.sockets)) in part.command
    finally:
        close_all(sockets)


ANSWERING = """
    import os, socket, sys
    from pathlib import Path
    from tidings.observe.part_status import PartStatus
    board = PartStatus(Path(sys.argv[1]), sys.argv[2]); board.ready(); board.flush()
    listener = socket.socket(fileno=int(sys.argv[3]))
    while True:
        connection, _ = listener.accept()
        connection.sendall(str(os.getpid()).encode())
        connection.close()
"""


def test_whoever_connects_while_the_api_is_away_waits_and_nobody_else_can_take_the_port(tmp_path: Path) -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    place = listener.getsockname()

    def answer() -> int:
        with socket.create_connection(place, timeout=240) as client:
            return int(client.recv(100))

    async def scene() -> None:
        part = PartCommand(
            "api",
            (sys.executable, "-c", textwrap.dedent(ANSWERING), str(tmp_path), "api", str(listener.fileno())),
            sockets=(listener.fileno(),),
            restart_max=0.2,
        )
        # By the settings it would be away for an hour.
        world = World(tmp_path, [part], settings(first=3600, most=3600))
        first = await asyncio.to_thread(answer)
        os.kill(first, signal.SIGKILL)
        await until_async(lambda: world.supervisor.restarts == {"api": 1})
        with pytest.raises(OSError, match="in use"):
            socket.create_server(place)
        assert await asyncio.to_thread(answer) != first
        await world.end()

    asyncio.run(scene())
    listener.close()


SUPERVISOR = """
    import asyncio, sys
    from pathlib import Path
    from tidings.config import Seconds, ServeSettings
    from tidings.observe.part_status import read_faces
    from tidings.serve.child_process import PartCommand
    from tidings.serve.supervisor import Supervisor
    from tidings.serve.terminal import Terminal

    folder = Path(sys.argv[1])
    part = PartCommand("api", (sys.executable, "-c", sys.argv[2], str(folder)))
    chosen = ServeSettings(Seconds(1), Seconds(1), Seconds(1), Seconds(1))
    supervisor = Supervisor([part], chosen, lambda: read_faces(folder), Terminal())
    asyncio.run(supervisor.run(asyncio.Event(), asyncio.Event(), lambda: None))
"""

TALKATIVE = """
    import logging, os, sys, time
    from pathlib import Path
    from tidings import config
    from tidings.observe import log_lines
    log_lines.set_up(config.load(environ={}).observe, "api")
    said, parent = 0, os.getppid()
    while os.getppid() == parent:
        for _ in range(100):
            logging.getLogger("tidings").warning("x" * 1000)
        said += 100
        Path(sys.argv[1], "said").write_text(str(said))
        time.sleep(0.01)
"""


def test_a_stopped_supervisor_does_not_stop_a_part_that_has_much_to_say(tmp_path: Path) -> None:
    said = tmp_path / "said"

    def lines_said() -> int:
        return int(said.read_text() or 0) if said.exists() else 0

    scripts = [textwrap.dedent(script) for script in (SUPERVISOR, TALKATIVE)]
    supervisor = subprocess.Popen([sys.executable, "-c", scripts[0], str(tmp_path), scripts[1]], stdout=subprocess.DEVNULL)
    try:
        until(lambda: lines_said() > 0)
        os.kill(supervisor.pid, signal.SIGSTOP)
        before = lines_said()
        # Far more than any pipe holds.
        until(lambda: lines_said() > before + 5_000)
    finally:
        supervisor.kill()
        supervisor.wait()


def test_the_part_that_a_supervisor_did_not_start_on_this_folder_refuses_it(tmp_path: Path) -> None:
    chosen = api_settings(tmp_path / "data")
    folder.prepare(chosen.data)
    (chosen.data / "hub.lock").write_text("1\n")
    ours, held = os.pipe()
    part = api_part(chosen, [])
    command = [word.replace("{lifeline}", str(ours)) for word in part.command]
    ended = subprocess.run(command, pass_fds=(ours,), capture_output=True, text=True, timeout=240, check=False)
    os.close(held)
    os.close(ours)
    assert (ended.returncode, "is not the data folder that this hub was started on" in ended.stderr) == (2, True), ended.stderr
    assert not (chosen.data / "log.db").exists()


def test_a_part_that_lost_its_folder_or_disk_says_so_and_a_fault_of_its_own_has_its_stack(tmp_path: Path) -> None:
    missing = FileNotFoundError(errno.ENOENT, "No such file or directory", "run/deliver.new")
    assert "is gone or empty" in outside_reason(missing, tmp_path / "data")
    (tmp_path / "data" / "run").mkdir(parents=True)
    assert outside_reason(missing, tmp_path / "data") == ""
    assert "No space left" in outside_reason(OSError(errno.ENOSPC, "No space left on device"), tmp_path / "data")
    assert outside_reason(ValueError("what"), tmp_path / "gone") == ""
