"""Streams: the owner of a lane hands its entries, one after the other, to whoever holds the lane's stream open.

What is not taken stays in the lane. Knows nothing of HTTP: doors write frames as their documents ask. `wire` is what both share.
"""
