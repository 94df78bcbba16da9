"""A cluster of one's own: evidence, calibrate, backtest, next-test and drift, with what they print."""
