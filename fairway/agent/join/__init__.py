"""How a cluster joins a fleet.

By push, the hub gets an account in the cluster (`push`) and renews its token (`token_renewal`).
By pull, an agent gets an invitation (`invitations`) that only lets it ask to join. It asks with a
public key; once an administrator accepts, it gets a credential sealed for that key alone
(`sealed_box`). The credential belongs to an account on the hub that can access its own cluster, the
fleet's settings and the rules of kinds, and nothing else (`rights`), and is renewed long before it
expires. `hub_side` is the hub's side of this, `agent_side` the agent's.
"""
