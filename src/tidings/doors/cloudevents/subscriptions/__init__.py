"""The CloudEvents Subscriptions API: documents read with all their faults at once, translated, shown, and changed."""
