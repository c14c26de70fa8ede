"""The store in one process: every object in memory, every write in SQLite before it is answered.

    store             the interface, implemented with the parts below
    journal, load     the append-only log on disk, the only module that uses SQLite; reading it back
    restored          the journal of a store that is restored from a backup
    version_note      the highest versions, beside the log, in case its end is lost
    memory            a journal in memory, for simulations
    shelves           the objects in memory, by kind, with what lists and watches need of them
    history           the last changes, for watches that resume and lists that continue
    lists, selection  a page of a kind's objects; which records a list or a watch selects
    watches           open watches and their events
    admission         the steps between a request and a stored object
    identities        uids and generated names
    writes            staging, group commit, publication
    collector, grace  dependents of deleted owners, contents of deleted namespaces; grace periods
    object_checks     what would be refused of objects that nobody writes, for plans and what-if
    refusals          errors, worded like those of a kube-apiserver

All of it runs on one event loop; only the journal has a thread, behind an interface.
"""
