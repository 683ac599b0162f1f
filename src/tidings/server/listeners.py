"""Where the hub listens: the common port, then those of doors that have one of their own.

Under a supervisor it is the supervisor that binds them. The ports stay the hub's while the api is started again, and whoever
connects meanwhile waits instead of being refused.
"""

from __future__ import annotations

import errno
import socket
from collections.abc import Sequence

from tidings.config import ServerSettings, Settings
from tidings.errors import Misconfigured, PortInUse
from tidings.server.own_ports import own_ports

BACKLOG = 2048


def bound(settings: Settings) -> list[socket.socket]:
    """A listening socket for every port, the common one first. Raises PortInUse or Misconfigured; none stays open then."""
    sockets: list[socket.socket] = []
    try:
        for server in (settings.server, *own_ports(settings).values()):
            sockets.append(listening(server))
    except BaseException:
        close_all(sockets)
        raise
    return sockets


def listening(server: ServerSettings) -> socket.socket:
    """A socket that listens there. Raises PortInUse or Misconfigured with the way out."""
    family = socket.AF_INET6 if ":" in server.host else socket.AF_INET
    try:
        return socket.create_server((server.host, server.port), family=family, backlog=BACKLOG)
    except OSError as error:
        place = f"{server.host}:{server.port}"
        if error.errno == errno.EADDRINUSE:
            raise PortInUse(f"something else listens on {place}; stop it, or choose another port with --port") from error
        raise Misconfigured(f"the hub cannot listen on {place}: {error.strerror or error}") from error


def handed_over(numbers: Sequence[int]) -> list[socket.socket]:
    """The sockets that a supervisor bound, from the numbers of their open files."""
    return [socket.socket(fileno=number) for number in numbers]


def close_all(sockets: Sequence[socket.socket]) -> None:
    """Close them. Safe to call twice."""
    for one in sockets:
        one.close()
