"""The wire shapes of the native door, and their translation to and from the core model."""
