"""The fit: most probable parameters, an ensemble of draws, refits without each scenario, the fitted file."""
