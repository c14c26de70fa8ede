"""The store on a real kube-apiserver: custom resources and native kinds, by `fairway.kubeapi`.

The server keeps, versions, validates and watches; what is left to do here is little. `store` turns
the interface's calls into requests, `watches` holds an open watch, `joined_writes` joins status
writes that wait for one another, `recent` knows what was seen last, so that a write that would
change nothing is left out, and `trim` makes the texts small. `definitions` and `creators` make of a
server what a hub needs of it.

Who writes is the identity of the connection, for the server's rights and its audit log. The user
that a `Write` names is noted on what is created, as the embedded store does.
"""
