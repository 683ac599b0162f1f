"""The Hermes door: Hermes' topics, subscriptions, paths and rules, in the words of the core.

Holds what is Hermes' alone. Only the list of doors and the hub's own loading of doors name it.
"""
