"""Many layouts at many rates."""
