"""Kinds described as data: KindRules, and the code that turns each into a Kind.

    places.py          paths that can be read and written
    expressions.py     CEL, and JSON whose leaves are CEL
    roles.py           where a manifest has its pods
    pods.py            the pods that a kind's own controller would make
    played_status.py   the status that it would write
    kind.py            the Kind of a rule
    load.py            rules from files and from objects, checked
    data/*.yaml        the rules that come with Fairway

Users add kinds the same way: `kind_of` turns a KindRule on the hub into a Kind, and `kinds_of`
all rules of a hub.
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
