"""Which door a path belongs to, and how that door sees it."""

from __future__ import annotations

import pytest

from tidings.facades.doors import door_of


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/feeds", ("feeds", "/feeds")),
        ("/feeds/orders/events", ("feeds", "/feeds/orders/events")),
        ("/feedsx", None),
        ("/api/topics/feeds/events", None),
        ("/api/horizon/sse/v1", None),
        ("/horizon/v1/integration/events", ("horizon", "/v1/integration/events")),
        ("/horizon/api/v1/circuit-breakers", ("horizon", "/api/v1/circuit-breakers")),
        ("/horizon/rover/v1/default/apply", ("horizon", "/horizon/rover/v1/default/apply")),
        ("/horizon/sse/v1/orders.v1/abc", ("horizon", "/horizon/sse/v1/orders.v1/abc")),
        ("/playground/horizon/events/v1", ("horizon", "/playground/horizon/events/v1")),
        ("/a/b/horizon/events/v1", None),
        ("/horizontal", None),
        ("/", None),
    ],
)
def test_a_path_belongs_to_a_door_and_is_seen_as_its_documents_write_it(path: str, expected: tuple[str, str] | None) -> None:
    assert door_of(path) == expected
