"""The life of a log: a word that no other log has, neither that of another hub nor the same one restored from a backup.

Cursors are positions of one life. Who reads by a token that names it learns that the log behind it is another one.
"""

from __future__ import annotations

import os
from hashlib import blake2b
from pathlib import Path

from tidings.data_files import write_durably
from tidings.errors import DataFolderUnusable
from tidings.log.position import EMBEDDED, START, Marks
from tidings.log.sqlite.entries import LEAP

LIFE_FILE = "log.life"
"""Made at the first start. Backups leave it out, so that a restored hub makes its own."""


def life_of(folder: Path, ends: Marks) -> str:
    """The life of the log in a data folder that ends there. Raises DataFolderUnusable.

    Positions leap where a log does not go on from its own end, so a leap begins another life too.
    """
    path = folder / LIFE_FILE
    try:
        if not path.exists():
            write_durably(path, os.urandom(16).hex().encode())
        text = path.read_bytes()
    except OSError as error:
        raise DataFolderUnusable(f"the file cannot be read or made: {error.strerror}", at=str(path)) from error
    return blake2b(b"%b/%d" % (text, ends.get(EMBEDDED, START) // LEAP), digest_size=8).hexdigest()
