"""How a subscription is delivered: presets, retries, pace, and what follows an attempt. Pure."""
