"""What moves: the CloudEvent value, its HTTP binding and its stored form.

Pure: no I/O, no clock, no HTTP server. Everyone may import it; it imports only `tidings.errors`.
"""
