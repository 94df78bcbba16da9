"""What figures of a table are off the model: scatter of runs, factors of layouts, the solver's own error."""
