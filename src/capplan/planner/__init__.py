"""Answers to planning questions: predictions with bands, objectives, outages, sizing, proposals."""
