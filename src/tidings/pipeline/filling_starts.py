"""Where the filling of a lane begins: before routing writes the first entry by the routes of the subscription that asked for it.

Otherwise entries from after the request could be delivered before the lane begins anew, and again with it.
"""

from __future__ import annotations

from collections.abc import Mapping

from tidings.lanes.sink import Filling, LaneSink, Routed
from tidings.log.position import LaneNumber
from tidings.registry.rules.fills import WantedFill


def begin_wanted(lanes: LaneSink, wanted: Mapping[LaneNumber, WantedFill]) -> Mapping[LaneNumber, Filling]:
    """Begin the fillings that have not begun yet and may give something; all that are known then. Safe to call again."""
    known = lanes.fillings()
    new = [_begun(one) for lane, one in wanted.items() if one.routes and _number(known.get(lane)) < one.fill.number]
    if not new:
        return known
    lanes.write(Routed((), {}, begun=new))
    return lanes.fillings()


def _begun(one: WantedFill) -> Filling:
    marks = one.fill.marks
    return Filling(lane=one.lane, number=one.fill.number, after=marks, since=one.since, reached=marks)


def _number(filling: Filling | None) -> int:
    return 0 if filling is None else filling.number
