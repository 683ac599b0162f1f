from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tidings import config
from tidings.pipeline.session import options


@pytest.mark.parametrize(("master", "own"), [("local[4]", True), ("local", True), ("spark://cluster:7077", False)])
def test_a_spark_of_our_own_takes_no_tasks_of_strangers_and_a_cluster_has_its_own_secret(master: str, own: bool) -> None:
    settings = replace(config.load(environ={}).pipeline, master=master)
    assert (options(settings, Path("spark")).get("spark.authenticate") == "true") is own


@pytest.mark.spark
def test_the_running_session_wants_authentication(spark: SparkSession) -> None:
    assert spark.sparkContext.getConf().get("spark.authenticate") == "true"
    assert spark.range(10).count() == 10
