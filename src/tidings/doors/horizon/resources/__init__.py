"""The resources of the Horizon door but publishing and streams, as one FastAPI application."""
