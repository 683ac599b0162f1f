"""What the hub knows of deliveries, in the words of Hermes."""
