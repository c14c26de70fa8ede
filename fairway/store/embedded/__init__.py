"""The store in one process: every object in memory, every write in SQLite before it is answered.

    store             the interface, put together
    journal, load     the append-only log on disk, the one module that knows SQLite; reading it back
    memory            a disk that is memory, for simulations
    shelves           the objects in memory, by kind, with what lists and watches ask of them
    history           the last changes, for watches that resume and lists that continue
    lists, selection  a page of a kind's objects; which records a list or a watch means
    watches           readers of changes
    admission         what happens to an object before it is kept
    submissions       queues that accept workloads of some people only
    identities        ids and generated names
    writes            staging, group commit, publication
    collector, grace  dependents of deleted owners, contents of deleted namespaces; time to end
    refusals          refusals, worded as a kube-apiserver words them

All of it runs on one event loop; only the journal has a thread, behind an interface.
"""
