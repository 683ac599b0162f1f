"""Tests of reading feeds, without HTTP."""
