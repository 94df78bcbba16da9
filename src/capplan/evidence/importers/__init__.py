"""Importers: what a load generator or a server's tool has written, as rows of the two tables; one file per kind."""
