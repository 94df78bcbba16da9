"""One folder a system, and the registry that finds them."""
