"""What a layout does: predict, simulate, sweep, compare, outages, check and serve, with what they print."""
