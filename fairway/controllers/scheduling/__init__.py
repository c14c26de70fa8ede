"""Scheduling: events to the planner, its plan to the store.

scheduler       the loop: what wakes it, and what it does then
wake_ups        what an event means for the next plan
planner, planner_process  how the planner is reached: inline, or in a child process
planner_state   the view, the cursor and the core: a state machine that is fed and asked
questions       what may be asked of the planner besides a plan: values, each with its answer
expected_starts  which workloads start next, as far as the size of the fleet allows
breaker_limits  what of a plan the breakers let through
claims          steps of a plan as statuses of workloads
commit          writes them, each against the version that was seen, under the leader's term
arrivals        who has been heard since the hub started
record          what the planner was fed and asked, so that every decision can be replayed
"""
