"""The store on a real kube-apiserver: custom resources and native kinds, by `fairway.kubeapi`.

The server stores, versions, validates and watches, so little is left to do here. `store` turns the
interface's calls into requests, `watches` holds an open watch, `joined_writes` joins status writes
that wait for one another, `recent` caches the latest objects, so that an update that would change
nothing is skipped, and `trim` drops managed fields. `definitions`, `held_back`, `creators`,
`submitters`, `deprecated` and `checked_writes` set a server up for a hub; `stamps` reads only what
these made the server record. `moments` and `restored` are for backups.

For the server's authorization and audit log, the connection's identity makes every write. The user
that a `Write` names is recorded on what is created, as in the embedded store.
"""
