"""How many files a process may have open: every connection and every stream is one."""

from __future__ import annotations

import resource

ENOUGH = 65536


def allow_many() -> int:
    """Raise this process's own limit as far as the machine allows, up to ENOUGH; the limit then. It is never lowered."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = ENOUGH if hard == resource.RLIM_INFINITY else min(ENOUGH, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        return wanted
    return soft
