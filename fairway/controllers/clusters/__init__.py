"""Clusters: their phase and health from the heartbeats of agents, and what they hold."""
