"""Structural schemas and their operations: prune, default, validate, merge.

Everything here is a pure function over plain JSON values (dicts, lists, strings, numbers) and a
`Node`, the parsed form of an OpenAPI v3 structural schema. The room knows how Kubernetes treats
fields; it knows no particular kind, no store and no HTTP. It imports only `api`.
"""
