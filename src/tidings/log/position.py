"""Positions. An offset is a place in one partition of the log; marks are one offset per partition.

The embedded log is one partition (number 0) whose offsets rise over all topics. A Kafka log has a partition number for every
(topic, partition) pair and no order between them, so nothing outside an adapter may compare offsets of two partitions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, NewType, TypeAlias

Offset = NewType("Offset", int)
"""0 is the place before the first entry; the first entry has offset 1 in the embedded log."""

Partition = NewType("Partition", int)

TopicNumber = NewType("TopicNumber", int)
"""The small number under which the registry knows a topic, for ever. 0 is the hub's own `commands` stream."""

LaneNumber = NewType("LaneNumber", int)
"""The small number of one subscription's lane, for ever."""

COMMANDS = TopicNumber(0)
EMBEDDED = Partition(0)
START = Offset(0)


class Position(NamedTuple):
    """The place of one entry."""

    partition: Partition
    offset: Offset


Marks: TypeAlias = Mapping[Partition, Offset]
"""How far, per partition: the end of the log, how far was routed, from where a change holds. A missing partition is START."""


def embedded(offset: int) -> Marks:
    """Marks of the embedded log, which has one partition."""
    return {EMBEDDED: Offset(offset)}
