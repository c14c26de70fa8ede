"""Traffic: how much of a service's load each cluster should get, for the parts that route it.

The weights are in the status of the workload and in a feed of the hub, and are written to the
backends of HTTPRoutes that ask for it. Fairway carries no traffic itself.
"""
