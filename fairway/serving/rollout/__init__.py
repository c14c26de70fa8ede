"""Which cluster has which revision of a service, decided from what was seen.

Pure like all of the core: a rollout keeps its memory in its status, so the same status, observation
and time always give the same next status, and a hub that restarts continues where the last one was.
"""
