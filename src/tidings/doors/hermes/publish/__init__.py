"""Publishing: the hot path of the door."""
