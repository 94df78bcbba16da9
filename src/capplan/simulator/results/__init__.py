"""The results of a run: tallies by interval, histograms, reports, and traces."""
