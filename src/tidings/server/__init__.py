"""HTTP plumbing that all doors share: reading bodies within limits, answering. No door's rules; doors and `app` import it."""
