"""Rollouts: keeps revisions of services, and writes which cluster is to have which.

`serving.rollout` decides the next step; the controller gives it what was seen, and writes the
result. Works are derived from what is written, so nothing here talks to a cluster.
"""
