"""Services that run: how many replicas, which revision where, how traffic is shared.

Pure, like the core, and beside it: no clock, no I/O, no randomness. The core decides where replicas
go; this says how many there should be (`scaling`), which revision each cluster has (`rollout`), and
how clusters share the load (`traffic`).
"""
