"""Objectives under conditions: what a layout sustains when nodes are lost, caches are cold, or clients retry."""
