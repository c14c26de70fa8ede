"""Kinds described as data: KindRules, and what makes a Kind of each.

    places.py        paths that can be read and written
    expressions.py   CEL, and JSON whose leaves are CEL
    roles.py         where the pods of a manifest stand
    running.py       the pods that a kind's own controller would make
    playing.py       the status that it would write
    kind.py          the Kind of a rule
    loading.py       rules from files and from objects, checked
    data/*.yaml      the rules that come with Fairway

Users add kinds the same way: a KindRule on the hub becomes a Kind by `kind_of`, all of a
hub's by `kinds_of`.
"""

from fairway.kinds.rules.kind import RuleKind
from fairway.kinds.rules.load import (
    Loaded,
    built_in_kinds,
    built_in_rules,
    kind_of,
    kinds_of,
)

__all__ = ["Loaded", "RuleKind", "built_in_kinds", "built_in_rules", "kind_of", "kinds_of"]
