"""The simulation kernel in C, and its binding: the types of its arrays (`layout`) and its calls (`library`)."""
