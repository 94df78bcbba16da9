"""Plots and pages."""
