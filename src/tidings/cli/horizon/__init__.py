"""Commands and documents of the Horizon door."""
