"""What answers are made of: objectives, verdicts, conditions, figures with bands, numbers in words, their JSON."""
