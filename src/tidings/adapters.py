"""Settings → adapters: the one place where it is chosen what the ports of a process stand on. Imports happen inside."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidings.config import Settings

if TYPE_CHECKING:
    from tidings.pipeline.process import PipelineParts


def pipeline_parts(settings: Settings) -> PipelineParts:
    """What routing reads and writes. Raises Unavailable while the api has not made the files yet."""
    from contextlib import ExitStack

    from tidings.log.sqlite.lanes import SqliteLanesWriter
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
