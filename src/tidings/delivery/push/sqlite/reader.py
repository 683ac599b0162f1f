"""Reads what all deliver workers have saved as if it were one. A lane is in one file, or moved to another one lately."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tidings.delivery.push.reader import DeadLetter, DeliveryRecord, LaneView
from tidings.delivery.push.records.port import Burials, Buried
from tidings.delivery.push.sqlite.schema import NUMBER_BITS, delivery_files
from tidings.delivery.push.sqlite.worker_file import OneFile
from tidings.log.position import LaneNumber

LOOKED_FOR = 1.0
"""Seconds until new files are looked for again."""


class SqliteDeliveryReader:
    """Implements DeliveryReader, DeadLetters and BurialsReader. Threads may share it; empty before deliver first starts."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: dict[Path, OneFile] = {}
        self._looked = -LOOKED_FOR
        self._lock = threading.Lock()

    def lane(self, lane: LaneNumber) -> LaneView:
        found = [view for file in self.all() if (view := file.view(lane)) is not None]
        return max(found, key=lambda view: view[0])[1] if found else LaneView(lane=lane)

    def lanes(self) -> Mapping[LaneNumber, LaneView]:
        newest: dict[LaneNumber, tuple[int, LaneView]] = {}
        for file in self.all():
            for saved_at, view in file.views():
                if view.lane not in newest or saved_at > newest[view.lane][0]:
                    newest[view.lane] = saved_at, view
        return {lane: view for lane, (_, view) in newest.items()}

    def deliveries(self, lane: LaneNumber, before: int | None, limit: int) -> Sequence[DeliveryRecord]:
        records = [record for file in self.all() for record in file.deliveries(lane, before, limit)]
        records.sort(key=lambda record: record.number, reverse=True)
        return records[:limit]

    def dead_letters(self, lane: LaneNumber, after: int, limit: int) -> Sequence[DeadLetter]:
        letters = [letter for file in self.all() for letter in file.dead_letters(lane, after, limit)]
        letters.sort(key=lambda letter: letter.number)
        return letters[:limit]

    def last_dead_letters(self, lane: LaneNumber, limit: int) -> Sequence[DeadLetter]:
        letters = [letter for file in self.all() for letter in file.last_dead_letters(lane, limit)]
        letters.sort(key=lambda letter: (letter.last_at, letter.number), reverse=True)
        return letters[:limit]

    def dead_letter(self, lane: LaneNumber, number: int) -> DeadLetter | None:
        found = self.dead_letters(lane, number - 1, 1)
        return found[0] if found and found[0].number == number else None

    def result(self, command_id: str) -> str | None:
        return next((result for file in self.all() if (result := file.result(command_id)) is not None), None)

    def burials(self, seen: Mapping[int, int], limit: int) -> Burials:
        found: list[Buried] = []
        for file in self.all():
            if len(found) < limit:
                worker, _ = self.worker_of(file.base)
                found += file.burials(seen.get(worker, 0), limit - len(found))
        # In the order of their numbers within each worker: the last one seen is the highest.
        return Burials(found, dict(self.worker_of(one.letter.number) for one in found))

    def worker_of(self, number: int) -> tuple[int, int]:
        return number >> NUMBER_BITS, number & ((1 << NUMBER_BITS) - 1)

    def close(self) -> None:
        with self._lock:
            for file in self._files.values():
                file.close()
            self._files = {}
            self._looked = -LOOKED_FOR

    def all(self) -> Sequence[OneFile]:
        """The files of all workers that there are by now."""
        with self._lock:
            if not self._files or time.monotonic() - self._looked > LOOKED_FOR:
                self._looked = time.monotonic()
                for path in delivery_files(self._folder):
                    if path not in self._files:
                        self._files[path] = OneFile(path)
            return list(self._files.values())
