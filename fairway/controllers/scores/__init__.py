"""Scores: runs Scorers, and writes what they yield to the ClusterScores.

controller     runs each scorer when it is due, and writes scores and statuses
running        how a scorer is measured: by the hub, by agents, or from what the hub knows
readings       pure: measured values to scores, by cluster and item
written        pure: what a ClusterScore and the status of a Scorer should say
failure_rates  how often attempts ended because of their cluster
trial          tries a scorer, and shows which choices it would change
"""
