"""The systems: one folder per system, found by name."""
