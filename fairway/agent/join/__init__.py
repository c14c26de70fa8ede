"""How a cluster joins a fleet.

By push, the hub gets an account in the cluster (`push`) and renews its token (`token_renewal`).
By pull, somebody in the cluster is given an invitation (`invitations`) that is worth nothing but to
ask. Whoever asks shows a public key; once an administrator accepts it, they get a credential sealed
for that key alone (`sealed_box`). The credential belongs to an account of the hub that reaches what
is that cluster's and nothing else (`rights`), and is renewed long before it ends. `hub_side` is
the hub's side of this, `agent_side` the agent's.
"""
