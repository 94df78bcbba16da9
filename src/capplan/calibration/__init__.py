"""Calibration: fits systems to evidence, fits load-test tables, and scores both kinds of fit."""
