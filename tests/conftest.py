"""What the whole suite shares: one Spark session and one running hub, each started only when a test asks for it."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.hub import Hub


# No test says anything about speed, also not by chance on a loaded machine.
settings.register_profile("tidings", deadline=None)
settings.load_profile("tidings")

# In the background of a shell Ctrl-C is ignored, and would be by every command that a test starts and interrupts.
signal.signal(signal.SIGINT, signal.default_int_handler)

SLOW = (
    *(f"delivery/push/test_{name}.py" for name in ("batches", "breaker", "crash", "engine", "expired", "fairness")),
    *(f"delivery/push/test_{name}.py" for name in ("known_deliveries", "orders", "retention", "workers")),
    "cli/test_commands.py",
    "cli/test_serving.py",
    "delivery/push/test_told.py",
    *(f"client/feeds/test_{name}.py" for name in ("docs", "exactly_once", "hub")),
    "client/test_horizon.py",
    *(f"doors/feeds/test_{name}.py" for name in ("both_versions", "foreign_clients", "v2", "waiting")),
    "doors/horizon/test_odd_requests.py",
    "doors/horizon/test_rover_api.py",
    "registry/test_store_properties.py",
    "doors/cloudevents/test_openapi.py",
    "doors/horizon/test_openapi.py",
    "doors/native/test_openapi.py",
    "doors/vng/test_openapi.py",
    "doors/native/test_operating.py",
    "doors/test_dead_letter_events.py",
    "doors/horizon/test_browser.py",
    "doors/horizon/test_sse.py",
    *(f"doors/sse/test_{name}.py" for name in ("crash", "many", "streams", "switching")),
    "ingest/test_protocol.py",
    *(f"hostile/test_{name}.py" for name in ("doors", "parsers")),
)
"""Files whose tests wait for real time, sockets and processes. `make check` leaves them out."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.as_posix().endswith(SLOW):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The routing session."""
    from tidings import config
    from tidings.pipeline import session

    # What tests route with is imported by Spark's workers, which take nothing from the folder they are started in.
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH")]))
    started = session.start(config.load(environ={}).pipeline, tmp_path_factory.mktemp("spark"))
    yield started
    started.stop()


@pytest.fixture(scope="session")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    """A hub that is ready. Tests use topics and subscriptions of their own, so that they can share it."""
    from tests.hub import Hub

    running = Hub(tmp_path_factory.mktemp("hub") / "data", '[push]\nretry_first = "50ms"\nretry_max = "200ms"\n')
    try:
        yield running.start().wait_ready()
    finally:
        running.stop()
