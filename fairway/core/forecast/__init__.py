"""Forecasts: reservations, backfill, expected starts, workloads that can never start."""
