"""Which clusters may take a workload, in which order, and which of them is best."""
