"""What is read from the terminal and written to it: tables, documents, lines."""
