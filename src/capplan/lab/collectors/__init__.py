"""Measurements of one part, taken from real servers: a collector says its target, its request and its columns."""
