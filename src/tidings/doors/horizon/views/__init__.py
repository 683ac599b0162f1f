"""What the hub knows, in Horizon's words: states, statuses, breakers, dropped events."""
