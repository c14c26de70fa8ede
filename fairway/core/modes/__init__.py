"""The three modes of placement: gangs, services divided over clusters, sweeps of tasks."""
