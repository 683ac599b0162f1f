"""Resources below a subscription: deliveries, dead letters, state, policy, secrets, stream."""
