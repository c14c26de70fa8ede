"""The core decides: a snapshot of the fleet in, a plan out.

Everything here is a pure, deterministic function of its arguments: no clock, no I/O, no
randomness, no logging. The same code serves production, dry runs, explanations, forecasts,
simulation and tests.

    model        what the core sees: plain frozen values
    nodes        the nodes of a cluster, in columns
    snapshot     the fleet frozen at `now`, indexed for reading
    steps        the plan: Admit, Preempt, Provision, Move; who waits and why
    cycle        plan(snapshot, cursor, budget): the cycle in one screen
    ledger       trial usage over a snapshot, with automatic undo
    quota        quota tree: available, borrowed, lent
    fairness     shares and the order among siblings
    flavors      which kind of capacity, by the queue's order and rules
    fit          how many pods of a shape fit where; packings; topology domains
    where        which clusters, in which order of groups and rungs; spread
    ranking      which of the feasible places is best
    division     replicas over clusters
    preemption   the smallest acceptable set of victims
    reservations nodes kept for gangs that wait; who may run ahead of them
    forecast     expected starts, by running the planner forward
    possible     what could never start
    explain      why one workload waits, and what would let it start
    invariants   what no plan may do

It imports `api` (for values and reasons) and nothing else of ours.
"""
