"""Ensembles of parameters drawn from the posterior of a table's fit."""
