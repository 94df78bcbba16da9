"""The command line apart from the commands: targets, options, the terminal, progress and workers."""
