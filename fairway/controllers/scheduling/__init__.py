"""Scheduling: feeds events to the planner and commits its plans to the store.

scheduler       the loop: what wakes it, and what it then does
wake_ups        what an event means for the next plan
planner, planner_process  calls to the planner: inline, or in a child process
planner_state   the planner: a state machine of the view, the cursor and the core
questions       queries to the planner, as values that know how to answer themselves
expected_starts  which workloads start next, as far as the size of the fleet allows
breaker_limits  which steps of a plan the breakers allow
never_starts    what is written of workloads that can never start
claims          turns steps of a plan into statuses of workloads
commit          writes the statuses, each against the version seen, in the leader's term
arrivals        which clusters have reported since the hub started
decisions       the decisions that were written lately, kept for the next hub
record          records the calls to the planner, so that every decision can be replayed
"""
