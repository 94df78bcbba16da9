"""What a system is: scenario, parameters, queueing network, closed forms, analytic solver."""
