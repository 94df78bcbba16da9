"""rhino_shcm."""
