"""What doors say of deliveries and ask of them: statuses, lag, commands, start points, dead letters, payloads."""
