"""Delivery's state in SQLite: `delivery-k.db`, written by deliver worker k alone, read by anyone."""

from tidings.delivery.push.sqlite.reader import SqliteDeliveryReader
from tidings.delivery.push.sqlite.records import SqliteRecords
from tidings.delivery.push.sqlite.writer import SqliteDeliveryStore

__all__ = ["SqliteDeliveryReader", "SqliteDeliveryStore", "SqliteRecords"]
