"""Backup and restore of a data folder, also of one whose hub is running. Reads files only; the hub need not know.

`order.py` says in which order the files are pinned and why; docs/decisions/004-backup-order.md has the whole argument.
"""
