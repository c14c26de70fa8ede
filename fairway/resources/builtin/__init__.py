"""Kubernetes' own kinds as the hub serves them.

    schemas.json   interface facts, made by tools/builtin_schemas.py
    kinds.py       the table of kinds, and `builtin_resources()`
    defaults.py, pod_defaults.py        defaults that are set on write
    checks.py, *_checks.py              what is refused beyond the schema
    tables.py, pod_table.py, ages.py    what `kubectl get` shows

May know `api.errors`, `schema` and `Resource`. Must not know the store, the server, or any clock.
"""

from fairway.resources.builtin.ages import human_age
from fairway.resources.builtin.kinds import builtin_resources

__all__ = ["builtin_resources", "human_age"]
