"""The VNG door: domains, events, subscriptions as the notification services of Dutch municipalities know them.

It follows the behavior text of VNG Realisatie; every deviation is a setting in `[vng]`. Only `doors/all_doors` imports it.
"""
