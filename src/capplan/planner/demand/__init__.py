"""Demand: what subscribers ask of a service, from a file: rates by request class, re-attach storms, data volume."""
