"""Measurements of one part, taken from real servers: each collector is a file."""
