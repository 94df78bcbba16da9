"""Apache Cassandra: cluster, consistency levels, encryption, round trips, visibility of writes."""
