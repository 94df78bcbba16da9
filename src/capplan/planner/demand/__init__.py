"""Demand: the load that subscribers put on a service, from a file: class rates, re-attach storms, data volume."""
