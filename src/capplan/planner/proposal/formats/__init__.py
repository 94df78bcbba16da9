"""What a proposal is written as: one document, shown as a page, a PDF and a workbook."""
