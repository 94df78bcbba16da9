"""The analytic solver and its closed forms."""
