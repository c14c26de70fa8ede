"""Rollouts: keeps revisions of services, and writes which cluster is to have which.

What is next is decided in `serving.rollout`; here it is asked with what was seen, and written down.
Works are derived from what is written, so this room tells no cluster anything.
"""
