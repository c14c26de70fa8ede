"""The history of the last hours and days, kept by the hub.

Every ten seconds the plane samples queues, clusters and services: queues and clusters by the
planner's gauges, services by the status of their workloads. There are three tracks: ten seconds for
an hour, a minute for twelve hours, ten minutes for seven days. A value that does not change between
samples costs nothing, so a fleet at rest is cheap however large it is.

Everything is bounded: names per kind, parts per name, bytes per track. Past these bounds the
largest names are kept and the rest is summed under the name `(others)`; a track that is too large
drops its oldest rows first. Moments without a sample are gaps.

Modules: `tracks` is one resolution, `book` names and tracks together, `services` and `samples` what
is sampled, `sampler` the sampling loop, `answers` the answers to questions, `book_lines` how a
restarted hub continues.

The question is `fleets/fleet/history`. Its parameters, and its answer:

    series=queues|clusters|services
    name=ONE,TWO      up to 100; services as namespace/name. Without: the whole fleet, under the
                      name "" (queues: all roots together; clusters: all); services take names
    since=SECONDS     how far back; by default 3,600
    points=N          at most this many moments, 2 to 1,000; by default 120

    {"now": 1800000000.0, "series": "queues",
     "step": 30,                          seconds between two moments
     "times": [1799996430, ...],          seconds since 1970, each the beginning of its step
     "found": [{"name": "research",       in the order asked for; unknown names are left out
                "values": {"waiting": [3, null, ...], "running": [...], "share": [...],
                           "used": [...], "fair": [...]},
                "parts": [{"name": "h100", "resource": "nvidia.com/gpu",
                           "values": {"nominal": [...], "used": [...], "borrowed": [...],
                                      "lent": [...]}}]}]}

Every array has the length of `times`; null is a gap. Values by series:

    queues    waiting, running, share (weighted, in thousandths), used and fair (GPUs that it has,
              and would have in a fair division); parts by flavor and resource: nominal, used,
              borrowed, lent. Each includes the queues below
    clusters  whole, used, starting, free, elastic: GPUs; parts by flavor: the same
    services  wanted, placed, ready: replicas; parts by cluster: placed

A moment has the mean of the samples in its step; for `waiting` and `wanted` the maximum.
"""
