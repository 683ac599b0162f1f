"""One lane: where each of its entries is, what is to be done next, and how both are kept. Pure: no I/O, no clock.

`state` draws the states, `choice` says what to do next, `saved` is the form on disk, `push_lane` is a lane with its owner.
"""
