"""The core decides: a snapshot of the fleet in, a plan out.

Everything here is a pure, deterministic function of its arguments: no clock, no I/O, no
randomness, no logging. The same code serves production, dry runs, explanations, forecasts,
simulation and tests.

What it sees and says
    model, nodes            plain frozen values; the nodes of a cluster in columns
    snapshot                the fleet frozen at `now`, everything charged and indexed
    steps, outcome          the plan; what the fleet would be once it is carried out
    invariants              what no plan may do (`proof`, `wholeness`)

Deciding
    cycle                   plan(snapshot, cursor, budget): the cycle in one screen
    desk, ledger            where one plan is made; trial usage with automatic undo
    gangs, services, sweeps the three modes (`splitting`, `multiples`, `returning`, `choosing`)
    refusals, limits        why not; limits of queues and users

Whose turn it is, and at whose expense
    quota                   quota tree: available, borrowed, lent (`quota_nodes`, `min_max`)
    fairness                the order among siblings (`shares`, `fading`)
    flavors                 which kind of capacity, by the queue's order and rules

Where it goes
    where, spread, choice   which clusters, in which order (`covering`)
    ranking, stock          which of them is best, and which can hold anything at all
    fit                     pods on nodes (`space`, `placing`, `search`, `topology`, `devices`,
                            `eligibility`, `miss`)
    division                replicas over clusters (`apportionment`, `homecoming`)

Making room
    preemption              the smallest acceptable set of victims (`legality`, `victims`,
                            `holders`, `ground`, `yielding`)
    provisioning, growth    new nodes of elastic pools
    weighing                lost work against money

Looking ahead
    reservations            nodes kept for gangs that wait; who may run ahead (`ends`, `futures`)
    forecast, possible      expected starts; what could never start
    explain                 why one workload waits, and what would let it start

It imports `api` (for values and reasons) and nothing else of ours.
"""
