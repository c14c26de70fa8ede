"""Which kinds a hub serves, and what is particular to each.

The catalogue holds one `Resource` per served version of a kind: built-in kinds of Kubernetes, and
whatever custom resource definitions say, our own kinds among them. This room knows schemas,
defaults, rules and table columns of kinds; it stores nothing and speaks no HTTP.
"""
