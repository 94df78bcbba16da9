"""What TLS costs today: a floor from a microbenchmark, and how much more a loaded server pays, from public pairs."""
