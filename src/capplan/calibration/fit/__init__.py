"""Fits of a system to its evidence."""
