"""The run-time model of one layout: the system contract, solved figures, their bands, and the basis of each figure."""
