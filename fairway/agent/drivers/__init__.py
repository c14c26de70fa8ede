"""Drivers: the only code that touches a cluster. A driver knows works and nodes, never queues."""
