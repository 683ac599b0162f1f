"""Wake-up: many listeners in several processes, none of which can stop the bell."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest
import uvloop

from tidings.log.wake import Bell, WakeListener, room

LISTEN = """
import sys
from pathlib import Path
from tidings.log.wake import WakeListener
listener = WakeListener(Path(sys.argv[1]), "log")
print("listening", flush=True)
print(listener.wait(60), flush=True)
"""


def test_a_ring_reaches_every_listener_of_its_channel_only(tmp_path: Path) -> None:
    bell, one, two, other = (Bell(tmp_path, "log"), *(WakeListener(tmp_path, channel) for channel in ("log", "log", "lanes")))
    bell.ring()
    assert (one.wait(10), two.wait(10), other.wait(0)) == (True, True, False)
    assert not one.wait(0), "a ring is heard once"


def test_a_ring_before_the_wait_is_kept(tmp_path: Path) -> None:
    bell, listener = Bell(tmp_path, "log"), WakeListener(tmp_path, "log")
    for _ in range(5000):
        bell.ring()
    assert listener.wait(0)
    assert not listener.wait(0)


def test_a_listener_that_comes_later_is_found(tmp_path: Path) -> None:
    bell = Bell(tmp_path, "log")
    bell.ring()
    first = WakeListener(tmp_path, "log")
    for _ in range(200):
        bell.ring()
        if first.wait(0.05):
            break
    else:
        raise AssertionError("the listener was never found")


def test_listeners_in_other_processes_are_woken(tmp_path: Path) -> None:
    processes = [
        subprocess.Popen([sys.executable, "-c", LISTEN, str(tmp_path)], stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "listening\n"
    Bell(tmp_path, "log").ring()
    assert [process.communicate(timeout=200)[0] for process in processes] == ["True\n", "True\n"]


def test_the_socket_of_a_dead_listener_is_removed_and_the_others_still_hear(tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", LISTEN, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    process.stdout.readline()
    process.kill()
    process.communicate()
    assert len(list(room(tmp_path, "log").iterdir())) == 1
    alive = WakeListener(tmp_path, "log")
    Bell(tmp_path, "log").ring()
    assert alive.wait(10)
    assert len(list(room(tmp_path, "log").iterdir())) == 1


def test_a_closed_listener_leaves_nothing_behind(tmp_path: Path) -> None:
    listener = WakeListener(tmp_path, "log")
    listener.close()
    listener.close()
    assert not list(room(tmp_path, "log").iterdir())


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run])
def test_waiting_on_an_event_loop_ends_with_a_ring_a_timeout_or_a_close(tmp_path: Path, run: type) -> None:
    async def steps() -> None:
        bell, listener = Bell(tmp_path, "log"), WakeListener(tmp_path, "log")
        assert not await listener.wait_async(0.01)
        bell.ring()
        assert await listener.wait_async(30)
        waiting = asyncio.ensure_future(listener.wait_async(30))
        await asyncio.sleep(0)
        bell.ring()
        assert await waiting
        last = asyncio.ensure_future(listener.wait_async(30))
        await asyncio.sleep(0)
        last.cancel()
        listener.close()
        with pytest.raises(asyncio.CancelledError):
            await last

    run(steps())


def test_a_long_folder_name_gets_a_short_private_room(tmp_path: Path) -> None:
    folder = tmp_path / ("long" * 30)
    place = room(folder, "log")
    assert not place.is_relative_to(tmp_path)
    assert place == room(folder, "log") != room(tmp_path / ("more" * 30), "log")
    assert place.parent.stat().st_mode & 0o077 == 0
    bell, listener = Bell(folder, "log"), WakeListener(folder, "log")
    bell.ring()
    assert listener.wait(10)
    listener.close()
    for made in (place, place.parent, room(tmp_path / ("more" * 30), "log"), room(tmp_path / ("more" * 30), "log").parent):
        made.rmdir()


def test_a_bell_without_a_folder_is_silent(tmp_path: Path) -> None:
    bell = Bell(tmp_path, "log")
    os.rmdir(room(tmp_path, "log"))  # noqa: PTH106
    bell.ring()
