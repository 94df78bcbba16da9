"""What a run leaves behind: tallies by interval, histograms, the run with its reports, and traces."""
