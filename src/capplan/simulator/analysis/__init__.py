"""Output analysis: confidence intervals, warm-up, drift and precision of simulated statistics."""
