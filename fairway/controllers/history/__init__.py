"""What happened over the last hours and days, kept by the hub.

Every ten seconds the plane writes down how queues, clusters and services stand: queues and clusters
by the planner's gauges, services by what their workloads say. Kept are three tracks: ten seconds
for an hour, a minute for twelve hours, ten minutes for seven days. Whatever a moment has in common
with the one before costs nothing, so a fleet at rest is cheap however large it is.

Everything is bounded: so many names of each kind, so many parts of each, so many bytes of each
track. Past these the largest names are kept and the rest is summed under the name `(others)`; of a
track that is too large the oldest goes first. Moments at which nobody looked are gaps.

Modules: `tracks` is one resolution, `book` names and tracks together, `services` and `samples` what
is seen, `sampler` who looks, `answers` what is asked for, `book_lines` how a hub that is started
again goes on.

The question is `fleets/fleet/history`. Its parameters, and its answer:

    series=queues|clusters|services
    name=ONE,TWO      up to 100; of services as namespace/name. Without: the whole fleet, under the
                      name "" (queues: all roots together; clusters: all); services take names
    since=SECONDS     how far back; 3,600 unless told
    points=N          at most so many moments, 2 to 1,000; 120 unless told

    {"now": 1800000000.0, "series": "queues",
     "step": 30,                          seconds between two moments
     "times": [1799996430, ...],          seconds since 1970, each the beginning of its step
     "found": [{"name": "research",       in the order asked for; who is not known is left out
                "values": {"waiting": [3, null, ...], "running": [...], "share": [...],
                           "used": [...], "fair": [...]},
                "parts": [{"name": "h100", "resource": "nvidia.com/gpu",
                           "values": {"nominal": [...], "used": [...], "borrowed": [...],
                                      "lent": [...]}}]}]}

Every array has the length of `times`; null is a gap. Values by series:

    queues    waiting, running, share (weighted, in thousandths), used and fair (GPUs that it has,
              and would have if all were divided fairly); parts by flavor and resource: nominal,
              used, borrowed, lent. Of a queue with those below it
    clusters  whole, used, starting, free, elastic: GPUs; parts by flavor: the same
    services  wanted, placed, ready: replicas; parts by cluster: placed

A moment has the mean of what was seen in its step; of `waiting` and `wanted` the most.
"""
