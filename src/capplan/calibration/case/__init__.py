"""A layout with its calibration: analysis, bands, and distance from the load tests."""
