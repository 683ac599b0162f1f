"""Declarative changes: what a document wants against what is in force."""
