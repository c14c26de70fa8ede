"""The deterministic simulation: a whole control plane, its clusters, its users and its misfortunes.

Two hub replicas, several agents and one store run in one thread on one virtual clock. All chance
comes from the seed, so a seed is a run: the same one gives the same events, byte for byte. `time`
moves the clock whenever nobody has anything left to do; `store_faces` and `driver_faces` stand
between each participant and the world and pass on its faults; `faults` and `users` say what happens
when; `checks` hold as it goes and `rest` once the faults have stopped.

    python -m fairway.sim --seed 7         one seed, told in full
    python -m fairway.sim --seeds 200      many, by all processors
"""
