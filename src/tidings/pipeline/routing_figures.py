"""What routing says of itself: whether it is live or catches up, and how long its steps take."""

from __future__ import annotations

import time

from tidings.observe.part_status import PartStatus


class RoutingFigures:
    """Writes routing's figures to the part's status. A change of mode is written at once, everything else with the next beat."""

    def __init__(self, board: PartStatus) -> None:
        self._board = board
        self._live: int | None = None

    def live(self) -> None:
        """One task follows the log from now on."""
        self._board.ready()
        self._mode(1)

    def catching_up(self) -> None:
        """A backlog is routed in closed ranges from now on."""
        self._mode(0)

    @property
    def is_live(self) -> bool:
        return self._live == 1

    def step(self, seconds: float) -> None:
        """A step, from the end that was fixed to durable lanes, took so long."""
        self._board.observe("tidings_batch_seconds", seconds)
        self._board.gauge("tidings_routing_step_seconds", round(seconds, 6))

    def failed(self) -> None:
        """A step failed; it is done again."""
        self._board.count("tidings_batches_failed_total")

    def _mode(self, live: int) -> None:
        if live != self._live:
            self._live = live
            self._board.gauge("tidings_routing_changed_seconds", time.time())
        self._board.gauge("tidings_routing_live", live)
        self._board.flush()
