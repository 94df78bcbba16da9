"""cassandra."""
