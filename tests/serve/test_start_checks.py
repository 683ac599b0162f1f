"""Checks before a start."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from tidings.config import Settings, load
from tidings.errors import Misconfigured, PortInUse
from tidings.serve import start_checks


def settings(**flags: Any) -> Settings:
    return load(environ={}, flags=flags)


def test_the_defaults_have_no_clash() -> None:
    assert list(start_checks.clashes(settings())) == []
    start_checks.check_settings(settings())


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ({"server": {"port": 70000}}, "server.port"),
        ({"topics": {"max_event_bytes": "8MiB"}}, "topics.max_event_bytes is above ingest.batch_bytes"),
        ({"ingest": {"batch_bytes": "128MiB"}}, "ingest.batch_bytes is above log.queue_bytes"),
        ({"push": {"retry_first": "1h"}}, "push.retry_first is above push.retry_max"),
        ({"push": {"inflight": 5000}}, "push.inflight is above push.total_inflight"),
        ({"push": {"tries": 0}}, "push.tries"),
        ({"serve": {"restart_first": "1h"}}, "serve.restart_first is above serve.restart_max"),
        ({"gateway": {"issuer": "https://hub/{env}"}}, "gateway.issuer is https://hub/{env}"),
        ({"vng": {"handshake": "maybe"}}, "vng.handshake is maybe"),
        ({"vng": {"permanent_statuses": [204]}}, "vng.permanent_statuses"),
        ({"vng": {"duplicates": "now and then"}}, "vng.duplicates"),
        ({"vng": {"retry_horizon": "0s"}}, "vng.retry_horizon"),
        ({"cloudevents": {"handshake": ""}}, "cloudevents.handshake"),
        ({"observe": {"log_format": "xml"}}, "observe.log_format"),
        ({"observe": {"log_level": "loud"}}, "observe.log_level"),
        ({"server": {"host": "0.0.0.0"}}, "open access"),
    ],
)
def test_a_clash_is_named_with_its_settings(flags: dict[str, Any], words: str) -> None:
    with pytest.raises(Misconfigured, match=words):
        start_checks.check_settings(settings(**flags))


def test_every_clash_is_told_at_once() -> None:
    with pytest.raises(Misconfigured, match=r"push\.tries.*serve\.restart_first"):
        start_checks.check_settings(settings(push={"tries": 0}, serve={"restart_first": "1h"}))


def test_a_port_in_use_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(PortInUse, match=f"127.0.0.1:{port}"):
            start_checks.check_port(settings(server={"port": port}))
    start_checks.check_port(settings(server={"port": port}))


def test_an_address_of_another_machine_is_refused() -> None:
    with pytest.raises(Misconfigured, match="cannot listen"):
        start_checks.check_port(settings(server={"host": "192.0.2.1", "port": 1}))
