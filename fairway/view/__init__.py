"""The snapshot, maintained by events; equal to one rebuilt from scratch.

    selecting     selectors of clusters, resolved to names
    queues, workloads, clusters, policies    API objects as the core's plain values
    reports       chunks and differences of reports: nodes in columns, our pods on them
    binding       pods that were seen, put to the claims that they belong to
    objects       a set of API objects, and the facts made of them from scratch
    view          facts and snapshot maintained object by object; decisions not yet answered

It imports `api`, `schema.cel` (for expressions in selectors) and `core`; it stores nothing, writes
nothing, and asks no clock.
"""
