"""Which cluster has which revision of a service, decided from what was seen.

Pure like all of the core: what a rollout remembers is in its status, so the same status, sight and
moment always give the same next status, and a hub that starts anew goes on where the last one was.
"""
