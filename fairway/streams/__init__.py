"""Many talks over one connection: how a hub asks an agent that it cannot reach.

An agent opens one connection to its hub and keeps it. Over it the hub opens talks: for output of a
pod, a command in it, a port of it. `requests` is what may be asked and how a talk ends, `frames`
what is on the wire, `line` the connection with its talks, and `memory` a connection within one
process, so that agents inside the hub are asked in the same way. `relay` carries a talk on over
another line, where a replica of the hub asks for one that reaches the agent.

This room knows time and bytes. It knows no HTTP library, no cluster and nobody's rights.
"""
