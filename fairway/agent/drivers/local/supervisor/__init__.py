"""The supervisor of a pod: a process of its own, which outlives the hub.

It imports a few modules of the standard library and nothing else, not even `pathlib`: it is started
for every pod, and takes some 30 ms to be there.
"""
