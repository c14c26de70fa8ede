"""Invariants of plans: checked on every plan in tests and simulation, on some in a running hub."""
