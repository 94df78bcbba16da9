"""The run-time model of one layout: what a system is, its solved figures, their bands and what these rest on."""
