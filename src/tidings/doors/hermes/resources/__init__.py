"""Management of the door over HTTP: groups, topics, subscriptions, providers, and what is done with them."""
