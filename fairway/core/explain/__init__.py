"""Explanations: why a workload waits, what it lacks, the state of queues; computed on request."""
