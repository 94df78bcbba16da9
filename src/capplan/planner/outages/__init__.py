"""Outages over time: what is left of a layout, the minutes around a loss, and whether retries let it recover."""
