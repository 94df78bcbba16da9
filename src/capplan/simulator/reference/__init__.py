"""The SimPy engine: the plain reading of the language, against which the compiled engine is checked."""
