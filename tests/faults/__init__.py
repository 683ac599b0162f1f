"""Faults: publish all the time, disturb everything at any moment, and count what was acknowledged against what arrived.

`python -m tests.faults --help` says which faults there are. `rounds/` has a module for each of them; `world.py` is the hub with
its publishers and endpoints; `ledger.py` counts.
"""
