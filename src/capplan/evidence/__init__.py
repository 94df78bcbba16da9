"""What was measured: documented figures and their sources, load-test tables, importers, audits."""
