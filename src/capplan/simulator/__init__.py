"""How a system behaves: two engines on one specification, their results and the analysis of these."""
