"""Works: what each cluster is to run. They are derived from claims and never decided.

`derive` is a pure function of a workload, its claim and the existing works; it is idempotent.

    controller      writes the derived works; stops works at a limited rate
    derive          which works are created, updated, tombstoned or deleted
    manifests       the objects of a work, with the decision applied
    refusals        why manifests are not sent to a cluster
    generated       objects for workloads that have only pod sets
    closed_places   clusters that get nothing new of a workload
    strangers       works that the hub did not decide
    sweeps          which tasks of a sweep a work has
    revisions       the revision that a cluster gets during a rollout
    verdicts        what agents said of the works that they were sent
    victims         whether preempted workloads are gone
"""
