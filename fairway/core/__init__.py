"""The core decides: a snapshot of the fleet in, a plan out.

Everything here is a pure, deterministic function of its arguments: no clock, no I/O, no
randomness, no logging. The same code serves production, dry runs, explanations, forecasts,
simulation and tests.

From the top down; each imports only what is below it (`.importlinter.stages`):

    checks/                 invariants of plans: used by tests, simulation and a running hub
    explain/                why a workload waits, what is missing, the state of queues
    forecast/               expected starts, what can never start
    cycle                   plan(snapshot, cursor, budget): the cycle in one screen
    modes/                  gangs, services, sweeps; how replicas are divided over clusters
    planning_round          the state of one plan
    reservations/           places kept for gangs that wait for room; backfill
    preemption/             which workloads may be preempted, and the least harmful victims
    provisioning/           elastic pools: which one, how many nodes, stock-outs, idle nodes
    reasons                 why a workload cannot start now, computed when read
    transitions             the fleet after a plan is carried out or decided
    costs/                  usage over time, and what it costs
    snapshot                the fleet frozen at `now`, charged and indexed; updated by changes
    clusters/               which clusters may take a workload, and which is best
    occupancy, seats        pods on nodes, seen or assumed; the placements that they belong to
    handover                what leaves, and to which workload it goes
    leaving_allowances      the same for what is left of the quotas of namespaces
    placement_request       a workload in one form on some flavors
    ledger                  trial usage with automatic undo
    quota/                  the tree of quotas, fair shares, the order of queues, flavors, limits
    packing/                pods on nodes: packings, topology domains, devices
    admission               pods as a cluster admits them, by its rules for their namespace
    missing_pods, task_numbers  pods that a gang lacks; the numbers of a sweep's tasks
    plan                    the plan: steps, and the reasons of what waits
    model, fleet_policy, nodes  plain frozen values; the nodes of a cluster in columns
    allowances              what clusters allow in namespaces: the rest of quotas, admissions
    measured                scores of clusters that are measured elsewhere
    likeness                a lookup key that is hashed once

It imports `api` (for values and reasons) and nothing else of ours.
"""
