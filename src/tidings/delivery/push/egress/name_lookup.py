"""Host names to addresses, by the machine's own resolver on threads of its own. Slow name servers hold up only their own names.

* One look-up per name at a time, also when nobody waits for it any more.
* A name that could not be resolved is not asked for again for a while, longer each time.
* Such names share half of the threads; the others are for names that were no trouble.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, TypeVar

from tidings.clock import Clock

THREADS = 16
FIRST_REST, LONGEST_REST = 1.0, 60.0
"""Seconds for which a name that was not resolved is left alone."""

GOOD_FOR = 5.0
"""Seconds for which an answer serves others who ask for the same name, or who had given up waiting for it."""

REMEMBERED = 10_000

T = TypeVar("T")

Resolve = Callable[[str, int], Sequence[str]]


class NameFailure(NamedTuple):
    """A name that was not resolved in time is left alone until then (monotonic seconds), `rest` seconds in all."""

    until: float
    rest: float


class NameAnswer(NamedTuple):
    """The addresses of a name, and until when they may be given to others."""

    addresses: Sequence[str]
    until: float


def resolved(host: str, port: int) -> Sequence[str]:
    """All addresses of a host. Blocks. Raises OSError."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(sockaddr[0]) for *_, sockaddr in found))


class SystemLookup:
    """The Lookup of the machine. One event loop. Nobody waits longer than `timeout` seconds."""

    def __init__(self, timeout: float, clock: Clock, threads: int = THREADS, resolve: Resolve = resolved) -> None:
        self._timeout = timeout
        self._clock = clock
        self._resolve = resolve
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="lookup")
        self._troubled_turn = asyncio.Semaphore(max(1, threads // 2))
        self._asking: dict[str, asyncio.Task[Sequence[str]]] = {}
        self._answers: dict[str, NameAnswer] = {}
        self._failures: dict[str, NameFailure] = {}

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        """All addresses of a host name. Raises OSError."""
        now = self._clock.monotonic()
        answer, failure = self._answers.get(host), self._failures.get(host)
        if answer is not None and now < answer.until:
            return answer.addresses
        if failure is not None and now < failure.until:
            raise OSError(f"{host} could not be resolved a moment ago")
        try:
            async with asyncio.timeout(self._timeout):
                return await asyncio.shield(self._asking.get(host) or self._begun(host, port))
        except TimeoutError:
            self._failed(host)
            raise

    def close(self) -> None:
        for asking in self._asking.values():
            asking.cancel()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _begun(self, host: str, port: int) -> asyncio.Task[Sequence[str]]:
        asking = self._asking[host] = asyncio.create_task(self._ask(host, port))
        asking.add_done_callback(lambda task: self._asking.pop(host, None))
        # Whoever asked may have given up: then nobody else takes the error.
        asking.add_done_callback(lambda task: task.cancelled() or task.exception())
        return asking

    async def _ask(self, host: str, port: int) -> Sequence[str]:
        try:
            if host in self._failures:
                async with self._troubled_turn:
                    addresses = await self._on_thread(host, port)
            else:
                addresses = await self._on_thread(host, port)
        except OSError:
            self._failed(host)
            raise
        self._failures.pop(host, None)
        _remember(self._answers, host, NameAnswer(addresses, self._clock.monotonic() + GOOD_FOR))
        return addresses

    async def _on_thread(self, host: str, port: int) -> Sequence[str]:
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._resolve, host, port)

    def _failed(self, host: str) -> None:
        """Leave the name alone, once for each look-up however many waited for it."""
        now, before = self._clock.monotonic(), self._failures.get(host)
        if before is not None and now < before.until:
            return
        rest = FIRST_REST if before is None else min(2 * before.rest, LONGEST_REST)
        _remember(self._failures, host, NameFailure(now + rest, rest))


def _remember(known: dict[str, T], host: str, value: T) -> None:
    known.pop(host, None)
    if len(known) >= REMEMBERED:
        del known[next(iter(known))]
    known[host] = value
