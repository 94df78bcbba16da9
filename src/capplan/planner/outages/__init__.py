"""Outages over time: the remaining layout, the minutes around a loss, and whether the system recovers from retries."""
