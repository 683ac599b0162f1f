"""Settings → parts of the api process. `adapters.py` chooses the adapters; the other processes have modules of their own."""

from __future__ import annotations

import asyncio
import gc
import logging
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager, suppress
from functools import cache
from typing import TYPE_CHECKING, Any

import uvicorn

from tidings.access.authentication import Authenticator
from tidings.access.gateway_tokens import GatewayKey
from tidings.access.key_file import KeyFile
from tidings.access.refused_tokens import RefusedTokens
from tidings.access.secret_box import Box, sealing_key, unreadable
from tidings.access.secrets import hub_key
from tidings.access.settings_checks import check_access
from tidings.adapters import api_adapters
from tidings.clock import Clock, LeapWatch, SystemClock
from tidings.config import ServerSettings, Settings
from tidings.doors.all_doors import DOORS
from tidings.doors.api_parts import ApiParts
from tidings.doors.deliveries.dead_letter_events import DeadLetterEvents
from tidings.doors.door import Doors
from tidings.doors.feeds.kept_cursors import forget_unused
from tidings.doors.growth import Growth
from tidings.doors.native.publish import NativePublish
from tidings.errors import Unavailable, tolerating
from tidings.ids import DeliveryIds
from tidings.ingest.admission import Admissions
from tidings.ingest.counters import PublishCounters
from tidings.ingest.duplicates import DuplicateCheck, windows_of
from tidings.ingest.intake import Intake
from tidings.ingest.retention import RetentionSweep
from tidings.log.wake import WakeListener
from tidings.observe.part_status import PartStatus
from tidings.registry.current import CurrentRegistry
from tidings.registry.fenced_changes import FencedChanges
from tidings.server.asgi import BodyBudget, Receive, Scope, Send
from tidings.server.http_protocol import WireLimits, limited
from tidings.server.listeners import bound, close_all, handed_over
from tidings.server.own_ports import apps_beside

if TYPE_CHECKING:
    from tidings.delivery.push.egress.reach import Reach

PUBLISH_FROM, PUBLISH_TO = "/api/topics/", "/events"
BOARD_INTERVAL = 1.0
CURSOR_SET_SWEEP = 600.0
"""Seconds between two looks for cursor sets that nobody uses."""

STOP_PATIENCE = 8.0
"""Seconds in which requests under way may finish when the hub stops."""

logger = logging.getLogger("tidings.api")


class Api:
    """The ASGI application of the api process: the hot path, and the doors, loaded while the port already listens."""

    def __init__(self, parts: ApiParts) -> None:
        self.parts = parts
        self._publish = NativePublish(parts)
        self._doors = Doors(parts, parts.doors)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"]
        if path.endswith(PUBLISH_TO) and scope["method"] == "POST" and path.startswith(PUBLISH_FROM):
            await self._publish(scope, receive, send, path[len(PUBLISH_FROM) : -len(PUBLISH_TO)])
            return
        door, inside = self._doors.meant(path)
        app = await self._doors.opened(door)
        await app(scope if inside is path else {**scope, "path": inside}, receive, send)

    @property
    def doors(self) -> Doors:
        """The doors, for those that have a port of their own."""
        return self._doors

    async def load(self) -> None:
        """Make the door of people ready before somebody asks for it."""
        await self._doors.load()


async def build_api(settings: Settings, board: PartStatus, stack: AsyncExitStack) -> Api:
    """Open every part of the api process and start its tasks; `stack` closes them in order. Raises Misconfigured."""
    check_access(settings.access, settings.server.host)
    settings.data.mkdir(parents=True, exist_ok=True)
    files = api_adapters(settings, stack)
    current = CurrentRegistry(files.registry)
    clock, tally, secret = SystemClock(), PublishCounters(), sealing_key(settings.access, settings.data)
    duplicates = DuplicateCheck(files.claims, files.log, clock)
    stack.push_async_callback(duplicates.close)
    admissions = Admissions(lambda: current.snapshot, settings.topics, settings.ingest)
    refused = RefusedTokens(clock, lambda: board.count("tidings_tokens_refused_total"))
    waiting = Growth(WakeListener(settings.data, "log"))
    stack.callback(waiting.close)
    lane_waiting = Growth(WakeListener(settings.data, "lanes"))
    stack.callback(lane_waiting.close)
    parts = ApiParts(
        settings=settings,
        clock=clock,
        gate=Authenticator(
            settings.access,
            clock,
            refused=refused,
            own_realm=settings.horizon.environment,
            divided=tuple(door.divided for door in DOORS if door.divided),
        ),
        log=files.log,
        life=files.life,
        slices=files.slices,
        events=files.events,
        lanes=files.lanes,
        lane_index=files.lane_index,
        delivery=files.delivery,
        dead_letters=files.dead_letters,
        records=files.records,
        ids=DeliveryIds(hub_key(settings.data).reveal()),
        registry=files.registry,
        changes=FencedChanges(files.log, files.registry, current.refresh),
        commands=files.commands,
        cursor_sets=files.cursor_sets,
        cursor_list=files.cursor_list,
        current=current,
        intake=Intake(admissions, files.log, duplicates, tally),
        body_budget=BodyBudget(settings.ingest.reading_bytes),
        doors=DOORS,
        waiting=waiting,
        lane_waiting=lane_waiting,
        board=board,
        box=Box(secret),
        gateway_key=GatewayKey(KeyFile(settings.data, Box(secret), 2 * settings.gateway.token_life, clock)),
        reach=_reaching(settings, clock, stack),
    )
    _tell_unreadable(parts)
    tasks = Tasks()
    stack.push_async_callback(tasks.end)
    tasks.start(duplicates.run(files.reader, windows_of(current.snapshot, settings.topics)))
    tasks.start(_sweep(parts, duplicates))
    tasks.start(_forget_cursor_sets(parts))
    tasks.start(_show(tally, board))
    if settings.push.dead_letter_events:
        tasks.start(DeadLetterEvents(parts, files.burials).run())
    return Api(parts)


def _tell_unreadable(parts: ApiParts) -> None:
    """Secrets of another key make deliveries fail; better said at the start than found out one by one."""
    lost = unreadable([*parts.snapshot.subscriptions.values(), *parts.snapshot.providers.values()], parts.box)
    if lost:
        logger.error(
            "secrets of %d subscriptions or providers were sealed with another key (%s): "
            "set access.key to the former one, or write them again",
            len(lost),
            ", ".join(lost[:5]),
        )


def _reaching(settings: Settings, clock: Clock, stack: AsyncExitStack) -> Callable[[], Reach]:
    """The way out, made when it is first needed: most api processes never call anybody."""

    @cache
    def reach() -> Reach:
        from tidings.delivery.push.egress.reach import Reach

        made = Reach(settings, clock)
        stack.push_async_callback(made.close)
        return made

    return reach


class Tasks:
    """What runs beside the requests. One that fails says so in the log; the rest goes on."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, body: Any) -> None:
        task: asyncio.Task[None] = asyncio.ensure_future(body)
        task.add_done_callback(self._ended)
        self._tasks.add(task)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            logger.error("a task of the api process failed", exc_info=task.exception())

    async def end(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


async def _sweep(parts: ApiParts, duplicates: DuplicateCheck) -> None:
    sweep = RetentionSweep(parts.log, parts.lanes, parts.registry, parts.changes, parts.settings.topics.retention, parts.clock)
    while True:
        await asyncio.sleep(parts.settings.log.retention_sweep)
        with tolerating(Unavailable, doing="the retention sweep"):
            await sweep.sweep(parts.snapshot)
            await duplicates.forget(windows_of(parts.snapshot, parts.settings.topics))
        parts.board.gauge("tidings_clock_leap_seconds", sweep.leapt())


async def _forget_cursor_sets(parts: ApiParts) -> None:
    leaps = LeapWatch(parts.clock)
    while True:
        with tolerating(Unavailable, doing="forgetting unused cursor sets"):
            leaps.check()
            await asyncio.to_thread(forget_unused, parts)
        await asyncio.sleep(CURSOR_SET_SWEEP)


async def _show(tally: PublishCounters, board: PartStatus) -> None:
    while True:
        await asyncio.sleep(BOARD_INTERVAL)
        tally.report(board)
        with tolerating(OSError, doing="the api's board"):
            board.flush()


async def run_api(settings: Settings, stop: asyncio.Event, board: PartStatus, sockets: Sequence[int] = ()) -> None:
    """Serve until `stop` is set; then take no more, finish what is under way, and close the log. Raises Misconfigured.

    `sockets`: the open files of the sockets that a supervisor bound, the common port first; else they are bound here.
    """
    async with AsyncExitStack() as stack:
        listener, *own = handed_over(sockets) if sockets else bound(settings)
        stack.callback(close_all, [listener, *own])
        api = await build_api(settings, board, stack)
        await serve(api, listener, stop, list(zip(apps_beside(settings, api.doors), own, strict=True)))
    board.not_ready("stopped")
    with tolerating(OSError, doing="the api's board"):
        board.flush()


async def serve(
    api: Api, listener: socket.socket, stop: asyncio.Event, beside: Sequence[tuple[Any, socket.socket]] = ()
) -> None:
    """Answer requests on this socket until `stop` is set and those under way are answered; and those of doors `beside` it."""
    # What is alive now stays alive, and events make no cycles: looking for garbage often costs a tenth of the rate for nothing.
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
    board = api.parts.board
    server = _Server(_server_config(api, api.parts.settings.server), lambda: _started(api, board))
    others = [_Server(_server_config(app, api.parts.settings.server), lambda: None) for app, _ in beside]
    serving = asyncio.ensure_future(server.serve([listener]))
    more = [asyncio.ensure_future(one.serve([own])) for one, (_, own) in zip(others, beside, strict=True)]
    stopping = asyncio.ensure_future(stop.wait())
    await asyncio.wait([serving, stopping], return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    board.not_ready("stopping")
    for one in (server, *others):
        one.should_exit = True
    api.parts.waiting.end()
    api.parts.lane_waiting.end()
    with suppress(asyncio.CancelledError):
        await asyncio.gather(serving, *more)


def _started(api: Api, board: PartStatus) -> None:
    board.ready()
    board.flush()
    asyncio.ensure_future(api.load())  # noqa: RUF006 - held by the Api itself


def _server_config(api: Any, server: ServerSettings) -> uvicorn.Config:
    limits = WireLimits(
        head_bytes=server.header_bytes,
        head_time=server.header_timeout,
        body_time=server.body_timeout,
        answer_time=server.answer_timeout,
        keep_alive=server.keep_alive,
        connections=server.max_connections,
        client_connections=server.max_connections_per_client,
    )
    return uvicorn.Config(
        api,
        http=limited(limits),
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=int(STOP_PATIENCE),
    )


class _Server(uvicorn.Server):
    """uvicorn's server without its own signal handling; it tells when it listens."""

    def __init__(self, config: uvicorn.Config, started: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_started = started

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_started()
