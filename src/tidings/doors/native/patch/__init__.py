"""Changes of single members: JSON Merge Patch over the documents of the native door."""
