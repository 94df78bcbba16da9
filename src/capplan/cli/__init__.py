"""The command line: one file per command, one folder per heading of `--help`, no arithmetic."""
