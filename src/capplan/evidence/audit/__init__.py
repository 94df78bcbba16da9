"""Checks of documented figures: expressions over rows, laws, claims, findings."""
