"""A real Cassandra cluster on this machine, from Python packages alone: start, delay between data centres, stop."""
