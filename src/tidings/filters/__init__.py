"""Which of it: one small total algebra, dialects that only parse into it, `matches`, `explain`, and the indexed `Router`.

Pure: no I/O, no clock. Imports `tidings.errors` and `tidings.events` only. A filter that exists never raises while matching.
"""
