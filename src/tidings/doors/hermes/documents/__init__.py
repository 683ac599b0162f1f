"""Hermes documents: read, checked, and what they come to in the core. Pure."""
