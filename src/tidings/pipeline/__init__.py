"""Stage 2, routed: Spark reads the log, routes every event to the lanes that asked for it, and writes those lanes.

`source.py` is where rows come from, `route.py` what is done, `sinks.py` where they go, `run.py` the process around them.
Imports `log`, `registry`, `filters`, `events`, `observe`; never `ingest` or `delivery`. Spark is imported nowhere else.
"""
