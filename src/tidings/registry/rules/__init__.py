"""The pure rules of the registry: names, what a document may say, approvals, what a change brings with it, and routes.

Nothing here does I/O or asks for the time. Doors call `check` before a change; the store calls the rest.
"""

from tidings.registry.rules.approvals import decided, decision, listed, may_publish, sourced
from tidings.registry.rules.changes import ChangePlan, Numbers, World, applied, plan_change
from tidings.registry.rules.documents import check, check_shape
from tidings.registry.rules.keys import DocumentKey, Version, key_of
from tidings.registry.rules.names import covers, parse_name
from tidings.registry.rules.routes import RouteHistory, routes

__all__ = [
    "ChangePlan",
    "DocumentKey",
    "Numbers",
    "RouteHistory",
    "Version",
    "World",
    "applied",
    "check",
    "check_shape",
    "covers",
    "decided",
    "decision",
    "key_of",
    "listed",
    "may_publish",
    "parse_name",
    "plan_change",
    "routes",
    "sourced",
]
