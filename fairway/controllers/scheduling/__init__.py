"""Scheduling: events to the planner, its plan to the store.

planning    the view, the cursor and the core: a state machine that is fed and asked
planner     how it is reached: inline, or in a child process
claims      steps of a plan as statuses of workloads
committing  writes them, each against the version that was seen, under the leader's term
arrivals    who has been heard since the hub started
restraint   what of a plan the breakers let through
scheduler   the loop: what wakes it, and what it does then
recording   what the planner was fed and asked, so that every decision can be replayed
"""
