"""The deterministic simulation: a whole control plane, its clusters, its users and its faults.

Two hub replicas, several agents and one store run in one thread on one virtual clock. All
randomness comes from the seed, so a seed is a run: the same seed gives the same events, byte for
byte. `time` moves the clock whenever no task can run; `store_faces` and `driver_faces` sit between
each participant and the store or cluster and inject faults; `faults` and `users` decide what
happens when; `checks` verifies invariants during the run and `rest` after the faults have stopped.

    python -m fairway.sim --seed 7         one seed, reported in full
    python -m fairway.sim --seeds 200      many, on all processors
"""
