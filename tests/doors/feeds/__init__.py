"""Tests of the feeds door, over HTTP."""
