"""Collectors that start a server of their own, which needs no lab."""
