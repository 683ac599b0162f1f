"""Prometheus exposition (text format 0.0.4) of the boards of all parts. A figure's name says what it is; HELP says it in words."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from itertools import accumulate

from prometheus_client import Metric, generate_latest

from tidings.observe.part_status import BUCKETS, PartState, Series

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

HELP: Mapping[str, str] = {
    "tidings_routing_live": "Whether routing follows the log live (1) or catches up with a backlog (0).",
    "tidings_routing_changed_seconds": "When routing last went over to its other mode (Unix time).",
    "tidings_routing_step_seconds": "How long the latest step of routing took, from the end that was fixed to durable lanes.",
    "tidings_batch_seconds": "How long steps of routing take, from the end that was fixed to durable lanes.",
    "tidings_batches_failed_total": "Steps of routing that failed and were done again.",
    "tidings_routed_plainly_total": "Events that the plain reading of filters decided because the index could not; it should be 0.",
    "tidings_regex_set_aside_total": "Events set aside because a regular expression had used up its subscription's time.",
    "tidings_published_total": "Events acknowledged, by topic.",
    "tidings_publish_refused_total": "Publish requests refused, by error code.",
    "tidings_publish_seconds": "Time from the whole request to its acknowledgement.",
    "tidings_tokens_refused_total": "Requests whose token was refused, at any door.",
    "tidings_duplicates_total": "Events accepted and not stored again, by topic.",
    "tidings_feed_events_total": "Events served by feeds, by consumer, feed and partition.",
    "tidings_feed_requests_total": "Requests for events of feeds, by consumer and feed.",
    "tidings_feed_long_lines_total": "Lines of feeds that were longer than some readers take, by topic.",
    "tidings_feed_waiting": "Requests for events of feeds that wait for one.",
    "tidings_feed_waits_refused_total": "Requests that were answered at once, because their consumer waits often enough.",
    "tidings_feed_cursor_lag_events": "Events after a kept cursor, among the newest 100,000; of the 1,000 cursors used last.",
    "tidings_clock_leap_seconds": "By how much the machine's clock leapt forward; while it is not 0 nothing is removed by age.",
    "tidings_part_ready": "Whether a part of the hub does its work.",
    "tidings_lag_events": "Entries that a stage has not finished yet.",
    "tidings_lag_seconds": "Age of the oldest entry that a stage has not finished yet.",
    "tidings_routed_total": "Events that were routed, whatever matched them.",
    "tidings_lane_entries_total": "Entries that routing wrote into lanes.",
    "tidings_set_aside_total": "Events that could not be routed to a subscription and were set aside with the reason.",
    "tidings_attempt_seconds": "How long attempts to deliver take, from the request to the answer.",
    "tidings_inflight": "Requests to callbacks that are on their way.",
    "tidings_open_items": "Deliveries that are being tried or wait for their next try, over all subscriptions.",
    "tidings_open_streams": "Streams that are open.",
    "tidings_lanes_healed_total": "Lanes that had something due which nobody sent, until the sweep found them; it should be 0.",
    "tidings_open_breakers": "Subscriptions whose circuit breaker is open.",
    "tidings_subscription_lag_events": "Entries of a subscription's lane that are not final yet.",
    "tidings_subscription_open_items": "Deliveries of a subscription that are being tried or wait for their next try.",
    "tidings_subscription_dead_letters": "Dead letters of a subscription.",
    "tidings_records_bytes": "About how many bytes the records of deliveries take.",
    "tidings_subscription_delivered_total": "Deliveries of a subscription since it exists, restarts included.",
    "tidings_subscription_delivered_bytes_total": "Bytes of bodies delivered to a subscription since it exists.",
    "tidings_subscription_attempts_failed_total": "Failed attempts of a subscription since it exists, by kind.",
    "tidings_subscription_dead_total": "Events of a subscription that became dead letters since it exists.",
    "tidings_subscription_expired_total": "Events of a subscription whose retention ended first, since it exists.",
    "tidings_subscription_last_delivered_seconds": "When a subscription last got something (Unix time); absent before that.",
}


def exposition(faces: Iterable[PartState], more: Iterable[Series] = ()) -> str:
    """Every figure of these boards, and some more, as Prometheus reads them. Figures of one name stand together."""
    by_name: dict[str, list[Series]] = {}
    for face in faces:
        _gather(by_name, [_readiness(face), *face.series])
    _gather(by_name, more)
    return generate_latest(_Families(_family(name, series) for name, series in sorted(by_name.items()))).decode()


def gauge(name: str, value: float, **labels: str) -> Series:
    """A figure that is worked out when somebody asks for it."""
    return Series(name=name, kind="gauge", labels=tuple(sorted(labels.items())), value=value)


def counter(name: str, value: float, **labels: str) -> Series:
    """A count that somebody keeps elsewhere."""
    return Series(name=name, kind="counter", labels=tuple(sorted(labels.items())), value=value)


def _gather(by_name: dict[str, list[Series]], series: Iterable[Series]) -> None:
    for one in series:
        by_name.setdefault(one.name, []).append(one)


def _readiness(face: PartState) -> Series:
    return gauge("tidings_part_ready", float(face.ready), part=face.part)


def _family(name: str, series: Iterable[Series]) -> Metric:
    """All figures of one name. The library puts `_total` behind the names of counters itself."""
    listed = list(series)
    help_text = HELP.get(name, name.removeprefix("tidings_").replace("_", " "))
    family = Metric(name.removesuffix("_total"), help_text, listed[0].kind)
    for one in listed:
        labels = dict(one.labels)
        if one.buckets is None:
            family.add_sample(name, labels, one.value)
            continue
        counts = list(accumulate(one.buckets))
        for bound, count in zip((*BUCKETS, math.inf), counts, strict=True):
            family.add_sample(f"{name}_bucket", {**labels, "le": "+Inf" if math.isinf(bound) else str(bound)}, count)
        family.add_sample(f"{name}_sum", labels, one.value)
        family.add_sample(f"{name}_count", labels, counts[-1])
    return family


class _Families:
    """Families that are there already, as the library asks for them."""

    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families
