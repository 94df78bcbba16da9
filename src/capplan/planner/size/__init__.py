"""Sizing: the smallest or cheapest layout that meets its objectives in every situation it must survive."""
