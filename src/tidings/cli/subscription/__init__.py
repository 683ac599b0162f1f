"""Subscriptions: putting and looking at them, their policies, approvals, and the short forms of `tidings subscription`."""
