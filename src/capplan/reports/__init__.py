"""Answers for people: one description each, and renderers for the screen, pages, PDF and workbooks; plots."""
