"""Governance: which rules of fleet policies a workload breaks.

Pure functions of a policy and a workload, used by every part that checks: the store when a workload
is written, the view before it is decided, controllers while it runs, and agents before they create
objects. It knows types, kinds and expressions; it must not know stores, queues or decisions.

    rules                what one policy allows: kinds, images, priorities, run times
    works                what works carry of policies, and what agents refuse by them
    cluster_selectors    whether a selector chooses a cluster
"""
