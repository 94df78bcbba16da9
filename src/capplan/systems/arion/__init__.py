"""arion."""
