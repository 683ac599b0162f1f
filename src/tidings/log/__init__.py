"""Where events are kept: the `Log` ports, positions, lanes, and their adapters (`sqlite/`; Kafka later).

The log knows bytes and positions, not what they mean. It imports `tidings.errors`, `tidings.clock`, `tidings.config` only.
"""
