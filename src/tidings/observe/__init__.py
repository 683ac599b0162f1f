"""Beside: what the parts tell about themselves — counters, gauges, readiness, log lines. Never decides anything."""
