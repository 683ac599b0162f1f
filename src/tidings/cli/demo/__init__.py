"""`tidings demo`: a hub with something happening in it, to watch. It speaks to its hub only over HTTP, like anybody else."""
