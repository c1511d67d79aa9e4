"""The use cases. Asks ports for facts, the core for decisions, ports for effects; imports no adapter."""
