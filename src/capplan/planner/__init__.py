"""What should be built: predictions with bands, objectives, outages, extrapolation."""
