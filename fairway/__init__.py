"""Fairway: one scheduler for AI workloads on a fleet of clusters.

The core decides, controllers carry out, agents touch the world; the folders say so. See
docs/architecture.md for the rooms and the words used in them.
"""

__version__ = "0.5.0"
