"""Whose turn it is, and at whose expense: the quota tree, fair shares, flavors, limits."""
