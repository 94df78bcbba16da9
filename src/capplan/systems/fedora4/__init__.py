"""fedora4."""
