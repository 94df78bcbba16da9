"""The report of a validation: a page of Markdown, figures, and both as files."""
