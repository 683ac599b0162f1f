"""The disk that the power is cut of: what was synced is there afterwards, what was not is lost."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.faults import images

pytestmark = pytest.mark.skipif(bool(images.why_not()), reason=images.why_not())


def test_a_copy_has_what_was_synced_and_not_what_was_only_written(tmp_path: Path) -> None:
    with images.Image(tmp_path, 16) as image:
        synced, written = image.at / "synced", image.at / "written"
        with synced.open("wb", buffering=0) as file:
            file.write(b"here")
            os.fsync(file.fileno())
        written.write_bytes(b"gone")
        image.put_in(image.copy())
        assert synced.read_bytes() == b"here"
        assert not written.exists() or written.read_bytes() == b""


def test_a_disk_is_filled_and_has_room_again(tmp_path: Path) -> None:
    with images.Image(tmp_path, 16) as image:
        filler = image.fill(0)
        assert image.free() < 8192
        with pytest.raises(OSError, match="No space left"):
            (image.at / "more").write_bytes(bytes(1 << 20))
        filler.unlink()
        assert image.free() > 1 << 20
