"""Stage 3, out: reads lanes and brings their entries to subscribers. Pushes today; streams and feeds will stand beside.

Imports `log`, `registry`, `events`, `observe`; never `ingest` or `pipeline`.
"""
