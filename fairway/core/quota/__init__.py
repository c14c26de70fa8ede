"""Quota: the quota tree, fair shares and the order of queues, flavors, limits."""
