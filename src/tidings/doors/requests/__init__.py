"""What requests to any door share: parameters, bodies, and how errors are answered."""
