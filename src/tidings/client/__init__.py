"""A small client of the hub's HTTP API, for the command line and for programs, and `verify` for who receives its deliveries.

Imports nothing of the hub but its errors; standard library only, so that a command starts quickly.
"""

from tidings.client.webhooks import NotVerified, verify

__all__ = ["NotVerified", "verify"]
