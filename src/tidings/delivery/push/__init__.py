"""Push: one owner per lane, concurrent attempts, retries with back-off, dead letters, lane state saved in groups.

The engine decides nothing itself: `after` in `decide.py` says what follows an attempt. At least once after any crash.
"""
