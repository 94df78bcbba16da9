"""Proposals: a sizing as a document for a customer, as a page, a PDF, a workbook and a checkable JSON."""
