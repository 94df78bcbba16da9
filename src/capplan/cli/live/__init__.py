"""Real servers: lab and collect, with what they print."""
