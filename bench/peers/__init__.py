"""Other engines on our workloads, side by side with ours. Needs a JDK and Maven; plain `make bench` does not."""
