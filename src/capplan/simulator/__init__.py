"""How a system behaves: the SimPy engine, its random streams and its results."""
