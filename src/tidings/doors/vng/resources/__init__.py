"""The resources `/domains` and `/subscriptions`, and what they share."""
