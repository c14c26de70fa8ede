"""Many talks over one connection: how a hub sends requests to an agent that it cannot reach.

An agent opens one connection to its hub and keeps it. Over it the hub opens talks: for logs of a
pod, a command in it, a port of it. `requests` defines the requests and how a talk ends, `frames`
the wire format, `line` the connection with its talks, and `memory` a connection within one process,
so that agents inside the hub are reached in the same way. `relay` forwards a talk over another
line, from one replica of the hub to the replica that reaches the agent.

This room knows time and bytes. It knows no HTTP library, no cluster and no access rights.
"""
