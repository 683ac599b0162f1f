"""JSONPath as Jayway's json-path 2.9 and 2.10 read it."""
