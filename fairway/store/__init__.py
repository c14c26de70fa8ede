"""Durable objects with versions and watches.

`interface` defines what a store promises; `embedded` implements it on SQLite in this process,
`kubernetes` on a real kube-apiserver. The semantics are those of a kube-apiserver, tested by the
contract suite in tests/contracts, which runs on both. A store knows nothing of the scheduler.
"""
