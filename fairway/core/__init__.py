"""The core decides: a snapshot of the fleet in, a plan out.

Everything here is a pure, deterministic function of its arguments: no clock, no I/O, no
randomness, no logging. The same code serves production, dry runs, explanations, forecasts,
simulation and tests.

Input and output
    model, nodes            plain frozen values; the nodes of a cluster in columns
    snapshot                the fleet frozen at `now`, charged and indexed; updated by changes
    plan, transitions       the plan; the fleet after the plan is carried out or decided
    explain/                why a workload waits, what is missing, the state of queues

Deciding
    cycle                   plan(snapshot, cursor, budget): the cycle in one screen
    planning_round, ledger  the state of one plan; trial usage with automatic undo
    placement_request       a workload in one form on some flavors
    modes/                  gangs, services, sweeps; how replicas are divided over clusters
    quota/                  the tree of quotas, fair shares, the order of queues, flavors, limits
    clusters/               which clusters may take a workload, and which is best
    packing/                pods on nodes: packings, topology domains, devices, occupancy
    preemption/             which workloads may be preempted, and the least harmful victims
    provisioning/           elastic pools: which one, how many nodes, stock-outs, idle nodes
    costs/                  usage over time, and what it costs
    forecast/               reservations, backfill, expected starts, what can never start
    checks/                 invariants of plans: used by tests, simulation and a running hub

It imports `api` (for values and reasons) and nothing else of ours.
"""
