"""Stage 2, routed: Spark reads the log, routes every event to the lanes that asked for it, and writes those lanes.

`route.py` is what is done to a range, `spark_jobs.py` how ranges run on Spark, `live.py` and `catch_up.py` the two ways of
routing, `routed_sink.py` where the rows go, `process.py` the process around them.
Imports `log`, `registry`, `filters`, `events`, `observe`; never `ingest` or `delivery`. Spark is imported nowhere else.
"""
