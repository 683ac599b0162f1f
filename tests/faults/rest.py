"""Whether a hub is at rest as its API tells it: everything routed, every lane without lag, nothing open, nothing due."""

from __future__ import annotations

import http.client
import time
from typing import Any

from tests.hub import Hub

PATIENCE = 180.0
"""Seconds without any progress after which a lane that is not at rest counts as stuck."""

LONGEST = 1800.0
"""Seconds after which what still moves moves in a circle."""


def unrest(hub: Hub) -> list[str]:
    """What is not at rest, one sentence each."""
    status = hub.call("GET", "/api/status").json
    behind = status["lag"]["routing"]["events"]
    found = [f"{behind} events are not routed"] if behind else []
    found += [f"{name} is not ready: {part['reason']}" for name, part in status["parts"].items() if not part["ready"]]
    for one in status["subscriptions"]:
        state = hub.call("GET", f"/api/subscriptions/{one['name']}/state").json
        words = _words(state)
        if words:
            found.append(f"{one['name']}: {', '.join(words)}")
    return found


def _words(state: dict[str, Any]) -> list[str]:
    """What keeps one lane from being at rest."""
    breaker = (state["breaker"] or {}).get("status", "closed")
    amounts = [f"{name} {state[name]}" for name in ("lag", "openItems", "redelivering", "deadLetters") if state[name]]
    words = [*amounts] if state["state"] == "active" else [f"state {state['state']} {state['reason']}".strip(), *amounts]
    words += [f"next due {state['nextDue']}"] if state["nextDue"] else []
    words += [f"breaker {breaker} {(state['breaker'] or {}).get('why', '')}".strip()] if breaker != "closed" else []
    return words


def wait_for_rest(hub: Hub, patience: float = PATIENCE) -> list[str]:
    """Wait until everything is at rest, or nothing has moved for `patience` seconds; what is not at rest then."""
    found: list[str] = ["nobody could be asked"]
    moved, give_up, end = found, time.monotonic() + patience, time.monotonic() + LONGEST
    while time.monotonic() < min(give_up, end):
        try:
            found = unrest(hub)
        except (OSError, http.client.HTTPException, KeyError, ValueError):
            # Between two lives of the api there is nobody to ask.
            found = ["nobody could be asked"]
        if not found:
            return []
        if found != moved:
            moved, give_up = found, time.monotonic() + patience
        time.sleep(0.5)
    return found
