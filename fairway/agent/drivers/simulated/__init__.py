"""A cluster that exists only in memory: nodes, pods and their lives, on the clock it is given.

`world` is the cluster itself and outlives whoever looks after it; `driver` is how an agent touches
it. Within a world, `nodes` is where pods find room, `pools` are nodes that come and go, `objects`
is what an API server would keep, `lives` is what becomes of pods, and `timers` is when.

Everything happens in the order of time and then of arrival, and all chance comes from the seed: two
worlds that are asked the same at the same times are the same.
"""
