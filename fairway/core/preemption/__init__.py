"""Preemption: whom a workload may preempt, and the least harmful victims."""
