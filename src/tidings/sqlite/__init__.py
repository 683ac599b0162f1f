"""SQLite plumbing that the embedded adapters share: files, locks, readers, the write-ahead log. Only adapters import it."""
