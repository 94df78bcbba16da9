"""One layout: capacity, latency, outages, each with its band."""
