"""From evidence to a fitted file: fits, fits of tables, scores of both."""
