"""Durable objects with versions and watches.

`interface` says what a store promises; `embedded` keeps the promise on SQLite in this process. The
semantics are those of a kube-apiserver, proved by the contract suite in tests/contracts. A store
knows kinds only through the catalogue, and never the scheduler.
"""
