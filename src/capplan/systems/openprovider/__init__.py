"""openprovider."""
