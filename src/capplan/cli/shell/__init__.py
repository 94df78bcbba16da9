"""The command line around the verbs: targets, options, the terminal, progress and workers."""
