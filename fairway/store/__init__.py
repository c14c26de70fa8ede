"""Durable objects with versions and watches.

`interface` says what a store promises; `embedded` keeps the promise on SQLite in this process,
`kubernetes` on a real kube-apiserver. The semantics are those of a kube-apiserver, proved by the
contract suite in tests/contracts, which runs on both. A store never knows the scheduler.
"""
