"""The Horizon door: Horizon's documents, paths and rules, in the words of the core.

Holds what is Horizon's alone. Only `tidings.app` imports it.
"""
