"""Documented systems: systems and validate."""
