"""Real servers: lab, collect and the live validation, with what they print."""
