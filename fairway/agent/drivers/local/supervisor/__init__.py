"""The supervisor of a pod: a separate process that outlives the hub.

It imports a few modules of the standard library and nothing else, not even `pathlib`: each pod
starts one, which takes about 30 ms.
"""
