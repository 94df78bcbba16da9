"""The systems: one folder each, found by name."""
