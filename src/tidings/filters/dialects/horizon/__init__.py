"""Horizon's filters: the simple and the advanced selection, triggers, scopes, and the trace of one that was tried."""
