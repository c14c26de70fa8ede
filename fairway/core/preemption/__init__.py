"""Preemption: which workloads may be preempted, and the least harmful set of victims."""
