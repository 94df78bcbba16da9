"""Collectors: each measures one part on real servers and defines its target, its request and its columns."""
