"""vcider."""
