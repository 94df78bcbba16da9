"""Documented figures with their sources and rounding."""
