"""What one question needs from a calibration: solution, uncertainty, model error, extrapolation."""
