"""The Spark session for routing: settings that make small jobs fast on one machine."""

from __future__ import annotations

import os
import sys
from importlib import resources
from pathlib import Path

from pyspark.sql import SparkSession

from tidings.config import PipelineSettings

_FAST = {
    # Unix sockets to the Python workers are quicker than TCP.
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    # Plans are tiny and always the same: planning them anew at run time only costs.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.locality.wait": "0",
}

_QUIET = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.cleaner.periodicGC.interval": "10min",
}

# Spark's driver and block manager listen on loopback, where any local user could send them tasks. With a local master Spark
# makes the secret itself; a cluster has its own, which belongs into spark-defaults.conf there and here.
_PRIVATE = {"spark.authenticate": "true"}


def start(settings: PipelineSettings, folder: Path, java_home: Path | None = None) -> SparkSession:
    """The running session; Spark's own files go below `folder`. Takes several seconds."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    # Python workers are started with `-m`, which would let them import whatever lies in the folder they are started in.
    os.environ["PYTHONSAFEPATH"] = "1"
    if java_home is not None:
        os.environ["JAVA_HOME"] = str(java_home)
    builder = SparkSession.builder.master(settings.master).appName("tidings routing")
    for key, value in options(settings, folder).items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def options(settings: PipelineSettings, folder: Path) -> dict[str, str]:
    """The options of the session."""
    quiet = resources.files("tidings.pipeline").joinpath("log4j2.properties")
    return {
        **_FAST,
        **_QUIET,
        **(_PRIVATE if settings.master.startswith("local") else {}),
        "spark.executorEnv.PYTHONSAFEPATH": "1",
        "spark.driver.memory": settings.driver_memory,
        "spark.local.dir": str(folder / "local"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile=file:{quiet} -XX:+UseSerialGC -Xss1m",
    }
