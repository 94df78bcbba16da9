"""The SimPy engine: a direct implementation of the language, the reference for the compiled engine."""
