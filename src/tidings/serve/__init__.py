"""Everything on one machine: the supervisor, its three children (api, pipeline, deliver), and the data folder they share.

Starts, watches, restarts and stops processes; knows nothing of events. Only the command line imports it.
"""
