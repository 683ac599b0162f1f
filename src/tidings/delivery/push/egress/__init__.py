"""The way out: checked addresses, name look-ups, connections, one attempt. The only place that opens sockets to endpoints."""
