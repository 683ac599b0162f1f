"""Stage 1, in: reads requests within limits, admits events, appends them, and acknowledges once they are durable.

Imports `log`, `registry`, `access`, `events`, `observe`; never `pipeline` or `delivery`. Doors import it, it imports no door.
"""
