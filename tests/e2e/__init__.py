"""Frameworks from the registry, run as workloads of a real hub: `make e2e`.

Their environment is one of its own, `.venv-e2e`; Fairway is not in it. Nothing here is collected by
`make test`.
"""
