"""Stage 3, out: reads lanes and brings their entries to subscribers: `push/`, `sse/`, and `feeds/`, which read topics too.

Imports `log`, `registry`, `events`, `observe`; never `ingest` or `pipeline`.
"""
