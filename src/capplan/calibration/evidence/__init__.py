"""Documented figures, with their rounding and their sources."""
