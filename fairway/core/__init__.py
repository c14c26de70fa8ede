"""The core decides: a snapshot of the fleet in, a plan out.

Everything here is a pure, deterministic function of its arguments: no clock, no I/O, no
randomness, no logging. The same code serves production, dry runs, explanations, forecasts,
simulation and tests.

What it sees and says
    model, nodes            plain frozen values; the nodes of a cluster in columns
    snapshot                the fleet frozen at `now`, charged and indexed; takes in changes
    plan, transitions       the plan; what the fleet would be once it is carried out
    explain/                why a workload waits, what is missing, how queues stand

Deciding
    cycle                   plan(snapshot, cursor, budget): the cycle in one screen
    planning_round, ledger  where one plan is made; trial usage with automatic undo
    modes/                  gangs, services, sweeps; how replicas are divided over clusters
    quota/                  the tree of quotas, fair shares, the order of queues, flavors, limits
    clusters/               which clusters may take a workload, and which is best
    packing/                pods on nodes: packings, topology domains, devices, occupancy
    preemption/             whom a workload may preempt, and the least harmful victims
    provisioning/           new nodes of elastic pools: which, how many, stock-outs, idle ones
    costs/                  who held what for how long, and what it cost
    forecast/               reservations, backfill, expected starts, what could never start
    checks/                 what no plan may do: used by tests, simulation and commit

It imports `api` (for values and reasons) and nothing else of ours.
"""
