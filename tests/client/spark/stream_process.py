"""A Spark application that reads a feed into a Parquet table, to be killed: `python -m … stream_process URL FOLDER`."""

from __future__ import annotations

import sys
from pathlib import Path

from tidings import config
from tidings.client.spark import FORMAT, register
from tidings.pipeline import session


def main(url: str, folder: str) -> None:
    spark = session.start(config.load(environ={}).pipeline, Path(folder) / "spark")
    register(spark)
    events = spark.readStream.format(FORMAT).option("url", url).option("maxEventsPerBatch", 20).load()
    into = events.writeStream.format("parquet").option("checkpointLocation", f"{folder}/checkpoint")
    into.trigger(availableNow=True).start(f"{folder}/table").awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
