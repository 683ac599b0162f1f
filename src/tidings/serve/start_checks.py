"""Checks before a start: everything that would make a hub fail or surprise later is said now, each as one sentence."""

from __future__ import annotations

import socket
from collections.abc import Iterator

from tidings import config
from tidings.access.settings_checks import check_access
from tidings.config import Settings
from tidings.delivery.push.lane_owner import MOST_WORKERS
from tidings.delivery.push.request.handshake import NoSupport
from tidings.errors import Misconfigured
from tidings.java import Java, find_java
from tidings.observe import log_lines
from tidings.registry.rules.documents import RETENTION
from tidings.serve import folder
from tidings.server.listeners import bound, close_all

HANDSHAKES = tuple(policy.value for policy in NoSupport)


def check_settings(settings: Settings) -> None:
    """Refuse settings that contradict each other or are not safe. Raises Misconfigured with every clash in it."""
    found = list(clashes(settings))
    if found:
        raise Misconfigured("; ".join(found))
    log_lines.format_of(settings.observe, terminal=False)
    log_lines.level_of(settings.observe)
    check_access(settings.access, settings.server.host)


def clashes(settings: Settings) -> Iterator[str]:
    """Settings that cannot both hold, each with its consequence."""
    push, serve, topics, ingest = settings.push, settings.serve, settings.topics, settings.ingest
    if not 0 <= settings.server.port <= 65535:
        yield f"server.port is {settings.server.port}: ports are 0 to 65535"
    if topics.max_event_bytes > ingest.batch_bytes:
        yield "topics.max_event_bytes is above ingest.batch_bytes: the largest events could not be published in any batch"
    if ingest.batch_bytes > settings.log.queue_bytes:
        yield "ingest.batch_bytes is above log.queue_bytes: the largest batches would always be refused as overload"
    if push.retry_first > push.retry_max:
        yield "push.retry_first is above push.retry_max: the first wait would already be longer than the longest"
    if push.inflight > push.total_inflight:
        yield "push.inflight is above push.total_inflight: one subscription could take all requests and starve the others"
    if push.tries < 1:
        yield "push.tries is below 1: nothing would ever be sent"
    if not 1 <= settings.deliver.workers <= MOST_WORKERS:
        yield f"deliver.workers is {settings.deliver.workers}: 1 to {MOST_WORKERS} processes can deliver"
    if "{" in settings.gateway.issuer.replace("{environment}", ""):
        yield f"gateway.issuer is {settings.gateway.issuer}: only {{environment}} stands for something else, no other braces do"
    if serve.restart_first > serve.restart_max:
        yield "serve.restart_first is above serve.restart_max: the first wait would already be longer than the longest"
    yield from _door_clashes(settings)


def _door_clashes(settings: Settings) -> Iterator[str]:
    vng = settings.vng
    for name, policy in (("vng", vng.handshake), ("cloudevents", settings.cloudevents.handshake)):
        if policy not in HANDSHAKES:
            yield f"{name}.handshake is {policy}: it is one of {', '.join(HANDSHAKES)}"
    if not all(300 <= answer <= 599 for answer in vng.permanent_statuses):
        yield "vng.permanent_statuses are answers that refuse an event: statuses from 300 to 599"
    if not _is_window(vng.duplicates):
        yield f'vng.duplicates is {vng.duplicates}: it is "off", a window such as "24h", or "forever"'
    if vng.retry_horizon < 1:
        yield "vng.retry_horizon is below 1s: no event would be tried again"


def _is_window(text: str) -> bool:
    try:
        return text in ("off", "forever") or 1 <= config.seconds(text) <= RETENTION[1]
    except ValueError:
        return False


def check_port(settings: Settings) -> None:
    """Refuse ports where something else listens, or that may not be bound. Raises PortInUse or Misconfigured."""
    close_all(bound(settings))


def free_port(host: str) -> int:
    """A port that nobody uses now, for `--port 0`."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])


def check_all(settings: Settings) -> Java:
    """Every check of `tidings serve` but the folder's lock; the Java to run Spark on. Raises Misconfigured."""
    check_settings(settings)
    folder.prepare(settings.data)
    return find_java()
