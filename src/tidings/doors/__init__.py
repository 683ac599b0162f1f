"""The doors: each translates its wire shapes to and from the core model and keeps its quirks in its own folder.

What all doors need stands beside them: the parts they work with, changing the registry, commands to delivery.
"""
