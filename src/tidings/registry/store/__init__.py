"""The registry in a database: SQLite in the data folder, or another one by its address. Every version is kept.

One change is one revision, stamped with the log marks it holds from. The writer brings the tables up to date when it opens;
readers never do. SQLAlchemy stays inside this package.
"""

from tidings.registry.store.reader import SqlRegistryReader
from tidings.registry.store.tables_version import open_reader, open_writer
from tidings.registry.store.writer import SqlRegistryWriter

__all__ = ["SqlRegistryReader", "SqlRegistryWriter", "open_reader", "open_writer"]
