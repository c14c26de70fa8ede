"""Measurements: repeatable, with ratios and growth; run with `make bench`."""
