"""The snapshot, maintained by events; equal to one rebuilt from scratch.

    selecting     selectors of clusters, resolved to names
    queues, workloads, clusters, policies    API objects as the core's plain values
    objects       a set of API objects, and the facts made of them
    view          the facts maintained object by object

It imports `api`, `schema.cel` (for expressions in selectors) and `core`; it stores nothing, writes
nothing, and asks no clock.
"""
