"""The snapshot, maintained by events; equal to one rebuilt from scratch.

    selectors     selectors of clusters, resolved to names
    queues, workloads, clusters, policies, prices  API objects as the core's plain values
    fleet_policies  which fleet policies apply to a workload, and what it breaks
    forms         the forms in which a workload may run, with the devices that it asks for
    pod_counts    the pods that are charged: no fewer and no smaller than run
    devices       devices as resources: by class, and by what they count as
    admission     what clusters with rules for a namespace make of the pods of a workload
    scores        scores of clusters, as they were measured
    charges       how requests count in quota, by the rules of the fleet
    reports       chunks and differences of reports: nodes in columns, our pods on them
    seen_pods     pods that reports have seen, matched to the claims they belong to
    objects       a set of API objects, and the facts made of them from scratch
    view          facts and snapshot maintained object by object; decisions not yet answered

It imports `api`, `schema.cel` (for expressions in selectors) and `core`; it stores nothing, writes
nothing, and asks no clock.
"""
