"""What no plan may do; used by tests, simulation and commit."""
