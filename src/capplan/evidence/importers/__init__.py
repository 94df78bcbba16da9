"""Importers: outputs of load generators and servers as rows of the two tables; one file per kind."""
