"""Predictions of networks written by hand: capacity, bottleneck and percentiles, with bands from simulation only."""
