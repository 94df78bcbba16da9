"""The queueing-network language: stations, steps, traffic, distributions, units, and their TOML form."""
