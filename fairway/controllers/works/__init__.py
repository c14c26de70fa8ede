"""Works: what each cluster is to run, derived from claims and never decided.

`derive` is a pure function of a workload, its claim and what there is already; deriving again from
what it gave changes nothing.

    controller      writes what is derived, at a limited rate where things are stopped
    derive          which works are made, changed, tombstoned or deleted
    manifests       the objects of a work, with the decision written into them
    generated       objects for workloads that say only which pods they need
    revisions       the revision that a cluster gets of a service with staged revisions
    adoption        works that an agent brought back to a hub that had forgotten them
    roster          which workload has works where
    states          states of works, as agents report them
    victims         whether preempted workloads are gone
"""
