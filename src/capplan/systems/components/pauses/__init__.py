"""Garbage-collection pauses of Cassandra nodes: measured runs, and the prior that follows from them."""
