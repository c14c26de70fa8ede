"""Clusters: their phase by what is heard of their agents, their health, what they hold."""
