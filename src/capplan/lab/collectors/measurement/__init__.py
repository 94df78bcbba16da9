"""How collectors measure: the load, the latencies, the CPU, and the machine they are of."""
