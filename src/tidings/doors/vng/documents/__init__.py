"""Domains and subscriptions as they are written, and what they come to in the core model."""
