"""What goes out: layouts of entries, credentials, signatures, handshakes. No sockets; `egress` sends it."""
