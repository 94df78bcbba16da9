"""Fits of generic systems to load-test tables of users: the model of a row, what rows decide, backtests."""
