"""Streams of the Horizon door: paths, tickets, frames."""
