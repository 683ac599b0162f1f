"""Rover and EventSpecification documents: read, judged together, and brought to the core's own documents."""
