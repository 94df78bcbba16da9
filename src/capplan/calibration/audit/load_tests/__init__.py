"""The audit of load-test tables: what must not be believed, and why."""
