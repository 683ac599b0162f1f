"""Tidings: an event hub. Publish once over HTTP; everyone who asked gets it the way they asked."""

__version__ = "0.1.0"
