"""Closed forms for one station: M/M/c, GI/G/m, load-dependent speed, stalls, and a system behind a pool."""
