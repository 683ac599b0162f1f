"""JSONPath as RFC 9535 has it."""
