"""Replicas over clusters: the four divisions, remainders, the way home."""
