"""Forecasts: expected starts, and workloads that can never start."""
