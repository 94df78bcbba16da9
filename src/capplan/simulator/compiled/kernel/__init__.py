"""The compiled engine's inner loop: flat arrays (`layout`) and the functions that numba compiles into one kernel."""
