"""Fits of generic systems to users' load-test tables: the model of a row, identifiability, backtests."""
