"""The cost of TLS: a floor from a microbenchmark, and the additional cost on loaded servers, from public pairs."""
