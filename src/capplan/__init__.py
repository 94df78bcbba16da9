"""capplan: a discrete-event simulator and capacity planner for Cassandra-backed services."""
