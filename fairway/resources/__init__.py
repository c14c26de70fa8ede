"""The kinds that a hub serves, and their specifics.

The catalogue holds one `Resource` per served version of a kind: built-in kinds of Kubernetes, and
those of custom resource definitions, including our own kinds. This room knows schemas, defaults,
rules and table columns of kinds; it stores nothing and speaks no HTTP.
"""
