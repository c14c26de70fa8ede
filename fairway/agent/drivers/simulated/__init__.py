"""A cluster that exists only in memory: nodes, pods and their lives, on a given clock.

`world` is the cluster itself and outlives its agents; `driver` is how an agent uses it. Within a
world, `nodes` places pods, `pools` are nodes that come and go, `objects` is what an API server
would keep, `made` what a work has made, `lives` what happens to pods, and `timers` when.

Events happen in order of time and then of arrival, and all randomness comes from the seed: two
worlds that get the same calls at the same times are the same.
"""
