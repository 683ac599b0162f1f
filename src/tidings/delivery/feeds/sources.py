"""Where feeds read: a topic's part of the log."""

from __future__ import annotations

from tidings.log.port import Extent, Limit, Share, Slice, TopicSlices
from tidings.log.position import Offset, TopicNumber


class TopicSource:
    """The events of a topic, straight from the log."""

    def __init__(self, slices: TopicSlices, topic: TopicNumber) -> None:
        self._slices = slices
        self._topic = topic

    def extent(self) -> Extent:
        """See `Source.extent`."""
        return self._slices.extent(self._topic)

    def slice(self, after: Offset, upto: Offset, share: Share, limit: Limit) -> Slice:
        """See `Source.slice`."""
        return self._slices.slice(self._topic, after, upto, share, limit)
