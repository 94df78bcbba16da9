"""The compiled engine: the whole language in machine code, on the same sample path as the SimPy engine."""
