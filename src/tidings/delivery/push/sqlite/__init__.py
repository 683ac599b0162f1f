"""Delivery's state in SQLite: `delivery-0.db`, written by its one deliver worker, read by anyone."""

from tidings.delivery.push.sqlite.reader import SqliteDeliveryReader
from tidings.delivery.push.sqlite.writer import SqliteDeliveryStore

__all__ = ["SqliteDeliveryReader", "SqliteDeliveryStore"]
