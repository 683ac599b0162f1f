"""Commands for those who come from Hermes."""
