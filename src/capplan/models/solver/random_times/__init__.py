"""Random times: sums, order statistics, mixtures and their quantiles."""
