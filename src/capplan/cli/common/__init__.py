"""What the verbs share: targets, options, the terminal, progress and workers."""
