"""What is recorded of single events, and the status that follows from it. Readable from any process."""
