"""Which load test to run next: how much each candidate would narrow an asked figure, or change a decision."""
