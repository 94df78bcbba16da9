"""Whether the claims of a saved answer still hold, by measurements of today."""
