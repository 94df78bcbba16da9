"""A real Cassandra cluster on this machine, from Python packages alone: start it, delay its data centres, stop it."""
