"""Answers for people: one description per answer, renderers for the screen, pages, PDF and workbooks; plots."""
