"""The store in one process: every object in memory, every write in SQLite before it is answered.

    journal     the append-only log on disk; the one module that knows SQLite
    shelves     the objects in memory, by kind, with what lists and watches ask of them
    history     the last changes, for watches that resume and lists that continue
    watches     who is told of changes
    admission   what becomes of an object before it is kept
    writes      staging, group commit, publication
    collector   dependents of deleted owners, contents of deleted namespaces and kinds
    store       the interface, put together

All of it runs on one event loop; only the journal has a thread, behind an interface.
"""
