"""Lanes in lanes.db: blocks of references, projected bodies, and the log's entries joined to them."""
