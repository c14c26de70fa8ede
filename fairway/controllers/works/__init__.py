"""Works: what each cluster is to run, derived from claims and never decided.

`derive` is a pure function of a workload, its claim and what there is already; deriving again from
what it gave changes nothing.

    derive          which works are made, changed, tombstoned or deleted
    manifests       the objects of a work, with the decision written into them
    generated       objects for workloads that say only which pods they need
    states          states of works, as agents tell them
    victims         whether those that must yield are gone
"""
