"""Left-out figures compared with the model and with simple rules."""
