"""The command line: a folder a heading of `--help`, one file a command, no arithmetic."""
