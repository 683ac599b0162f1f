"""Settings → adapters: the one place where it is chosen what the ports of a process stand on.

Imports happen inside, so that a process loads what it uses and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AsyncExitStack, ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidings.config import Settings

if TYPE_CHECKING:
    from tidings.delivery.feeds.cursor_sets import CursorOverview, CursorSets
    from tidings.delivery.push.process import DeliverAdapters, DeliverParts
    from tidings.delivery.push.reader import DeadLetters, DeliveryReader
    from tidings.delivery.push.records.port import BurialsReader, RecordsReader
    from tidings.delivery.push.store import DeliveryStore
    from tidings.ingest.claims import ClaimsTable
    from tidings.lanes.port import LaneIndex, Lanes
    from tidings.log.commands import CommandGiver
    from tidings.log.port import EventLog, LogReader, LogWriter, TopicSlices
    from tidings.pipeline.process import PipelineParts
    from tidings.registry.port import RegistryWriter


@dataclass(frozen=True, slots=True)
class ApiAdapters:
    """What the api process stands on. `delivery`, `records` and `burials` are three views of what delivery has saved."""

    log: LogWriter
    reader: LogReader
    slices: TopicSlices
    events: EventLog
    lanes: Lanes
    lane_index: LaneIndex
    delivery: DeliveryReader
    dead_letters: DeadLetters
    records: RecordsReader
    burials: BurialsReader
    registry: RegistryWriter
    commands: CommandGiver
    cursor_sets: CursorSets
    cursor_list: CursorOverview
    claims: ClaimsTable
    life: str


def api_adapters(settings: Settings, stack: AsyncExitStack) -> ApiAdapters:
    """Open everything for writing that is the api's; `stack` closes it in order."""
    from tidings.delivery.feeds.sqlite_cursor_sets import SqliteCursorSets
    from tidings.delivery.push.sqlite import SqliteDeliveryReader, SqliteRecords
    from tidings.ingest.claims import ClaimsTable
    from tidings.lanes.sqlite.lanes import EmbeddedLanes
    from tidings.lanes.sqlite.writer import SqliteLanesReader
    from tidings.log.sqlite.command_stream import SqliteCommandGiver
    from tidings.log.sqlite.events import SqliteEventLog
    from tidings.log.sqlite.life import life_of
    from tidings.log.sqlite.reader import SqliteLogReader
    from tidings.log.sqlite.topic_slices import SqliteSlices
    from tidings.log.sqlite.writer import SqliteLogWriter
    from tidings.registry.store import open_writer

    folder = settings.data
    log = SqliteLogWriter(folder, settings.log)
    stack.push_async_callback(log.close)
    registry = open_writer(folder)
    stack.callback(registry.close)
    reader, lanes, delivery = SqliteLogReader(folder), SqliteLanesReader(folder), SqliteDeliveryReader(folder)
    slices, cursor_sets = SqliteSlices(folder), SqliteCursorSets(folder)
    for closing in (reader.close, slices.close, cursor_sets.close, lanes.close, delivery.close):
        stack.callback(closing)
    joined = EmbeddedLanes(lanes, reader)
    return ApiAdapters(
        log=log,
        reader=reader,
        slices=slices,
        events=SqliteEventLog(reader),
        lanes=joined,
        lane_index=joined,
        delivery=delivery,
        dead_letters=delivery,
        records=SqliteRecords(delivery),
        burials=delivery,
        registry=registry,
        commands=SqliteCommandGiver(log),
        cursor_sets=cursor_sets,
        cursor_list=cursor_sets,
        claims=ClaimsTable(folder / "duplicates.db"),
        life=life_of(folder, reader.ends()),
    )


def pipeline_parts(settings: Settings) -> PipelineParts:
    """What routing reads and writes. Raises Unavailable while the api has not made the files yet."""
    from tidings.lanes.sqlite.writer import SqliteLanesWriter
    from tidings.log.sqlite.reader import SqliteLogReader
    from tidings.log.sqlite.routing_source import SqliteRoutingSource
    from tidings.pipeline.process import PipelineParts
    from tidings.registry.store import open_reader

    with ExitStack() as stack:
        lanes = SqliteLanesWriter(settings.data)
        stack.callback(lanes.close)
        log = SqliteLogReader(settings.data)
        stack.callback(log.close)
        registry = open_reader(settings.data)
        stack.callback(registry.close)
        source = SqliteRoutingSource(settings.data, log)
        return PipelineParts(lanes, source, log, registry, stack.pop_all().close)


def deliver_adapters(settings: Settings, number: int = 0) -> DeliverAdapters:
    """What deliver worker `number` stands on."""
    from tidings.delivery.push.process import DeliverAdapters, DeliverParts
    from tidings.delivery.push.request.formats import Formats
    from tidings.delivery.push.sqlite import SqliteDeliveryStore
    from tidings.delivery.push.sqlite.worker_count import reshare
    from tidings.doors.all_doors import DOORS
    from tidings.doors.door import format_modules

    def store() -> DeliveryStore:
        reshare(settings.data, settings.deliver.workers)
        return SqliteDeliveryStore(settings.data, number, settings.push.records_bytes // settings.deliver.workers)

    @contextmanager
    def parts(store: DeliveryStore) -> Iterator[DeliverParts]:
        from tidings.lanes.sqlite.lanes import EmbeddedLanes
        from tidings.lanes.sqlite.writer import SqliteLanesReader
        from tidings.log.sqlite.command_stream import SqliteCommandStream
        from tidings.log.sqlite.events import SqliteEventLog
        from tidings.log.sqlite.reader import SqliteLogReader
        from tidings.registry.current import CurrentRegistry
        from tidings.registry.store import open_reader

        with ExitStack() as stack:
            registry = open_reader(settings.data)
            stack.callback(registry.close)
            log = SqliteLogReader(settings.data)
            stack.callback(log.close)
            lanes = SqliteLanesReader(settings.data)
            stack.callback(lanes.close)
            formats = Formats(format_modules(DOORS), settings)
            yield DeliverParts(
                CurrentRegistry(registry),
                EmbeddedLanes(lanes, log),
                SqliteCommandStream(log),
                SqliteEventLog(log),
                store,
                formats,
            )

    return DeliverAdapters(store, parts)
