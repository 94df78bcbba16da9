"""Simulation of a system: two engines on one specification, their results, and the analysis of these."""
