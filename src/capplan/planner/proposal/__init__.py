"""Proposals: a sizing as a customer document in four forms: page, PDF, workbook and checkable JSON."""
