"""The three modes of placement: gangs, divided services, sweeps of independent tasks."""
