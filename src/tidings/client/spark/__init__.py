"""Feeds as a Spark data source: `register(spark)`, then `spark.readStream.format("tidings-feed").option("url", …).load()`.

Reads any FeedAPI or ZeroEventHub server. Imports PySpark, so nothing else of the client imports this package.
"""

from tidings.client.spark.source import FORMAT, FeedDataSource, register

__all__ = ["FORMAT", "FeedDataSource", "register"]
