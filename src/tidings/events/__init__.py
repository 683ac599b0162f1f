"""What moves: the CloudEvent value, its HTTP binding and its stored form.

Pure: no I/O, no clock, no HTTP server. Everyone may import it; it imports only `tidings.errors` and `tidings.clock`.
`http` is the doorway for CloudEvents, `plain` for requests that are none, `stored` for the log.
"""
