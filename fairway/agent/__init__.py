"""Agents touch the world: each makes one cluster match its works on the hub, and reports.

The same code serves every cluster, real or simulated; what differs is the driver. An agent knows
the hub by the store's interface, so it may run inside the hub or far from it.

May know the types, kinds, expressions, the clock and the store's interface; must not know the core,
queues or policies.
"""
