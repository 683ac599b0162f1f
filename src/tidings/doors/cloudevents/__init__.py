"""The CloudEvents door: the HTTP binding for publishing, and the CloudEvents Subscriptions API for subscribers.

Translates the standard's documents to and from the core model, and holds what only they say. Imported by `all_doors` only.
"""
