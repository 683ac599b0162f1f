"""Streams of lanes, for every door: the way to a lane's owner, and the answer that is written as events come.

Each door brings its own frames. Nothing here knows who may open which stream: doors ask that before.
"""
