"""Prometheus exposition (text format 0.0.4) of the boards of all parts. A figure's name says what it is; HELP says it in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tidings.observe.board import BUCKETS, Face, Labels, Series

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

HELP: Mapping[str, str] = {
    "tidings_routing_live": "Whether routing follows the log live (1) or catches up with a backlog (0).",
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
    "tidings_part_ready": "Whether a part of the hub does its work.",
    "tidings_lag_events": "Entries that a stage has not finished yet.",
    "tidings_lag_seconds": "Age of the oldest entry that a stage has not finished yet.",
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


def exposition(faces: Iterable[Face], more: Iterable[Series] = ()) -> str:
    """Every figure of these boards, and some more, as Prometheus reads them. Figures of one name stand together."""
    by_name: dict[str, list[Series]] = {}
    for face in faces:
        _gather(by_name, [_readiness(face), *face.series])
    _gather(by_name, more)
    return "".join(_family(name, series) for name, series in sorted(by_name.items()))


def gauge(name: str, value: float, **labels: str) -> Series:
    """A figure that is worked out when somebody asks for it."""
    return Series(name=name, kind="gauge", labels=tuple(sorted(labels.items())), value=value)


def counter(name: str, value: float, **labels: str) -> Series:
    """A count that somebody keeps elsewhere."""
    return Series(name=name, kind="counter", labels=tuple(sorted(labels.items())), value=value)


def _gather(by_name: dict[str, list[Series]], series: Iterable[Series]) -> None:
    for one in series:
        by_name.setdefault(one.name, []).append(one)


def _readiness(face: Face) -> Series:
    return gauge("tidings_part_ready", float(face.ready), part=face.part)


def _family(name: str, series: Iterable[Series]) -> str:
    listed = list(series)
    head = f"# HELP {name} {HELP.get(name, name.removeprefix('tidings_').replace('_', ' '))}\n# TYPE {name} {listed[0].kind}\n"
    return head + "".join(_lines(one) for one in listed)


def _lines(series: Series) -> str:
    if series.buckets is None:
        return f"{series.name}{_labels(series.labels)} {_number(series.value)}\n"
    lines = []
    total = 0
    for bound, count in zip((*map(_number, BUCKETS), "+Inf"), series.buckets, strict=True):
        total += count
        lines.append(f"{series.name}_bucket{_labels((*series.labels, ('le', bound)))} {total}\n")
    labels = _labels(series.labels)
    lines.append(f"{series.name}_sum{labels} {_number(series.value)}\n{series.name}_count{labels} {total}\n")
    return "".join(lines)


def _labels(labels: Labels) -> str:
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels) + "}" if labels else ""


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)
