"""The embedded log: one SQLite file for entries and one for lanes, each with one writer and any number of readers.

Knows files, transactions and positions; nothing of events. Chosen in `app.py` and by the bodies of the parts.
"""
