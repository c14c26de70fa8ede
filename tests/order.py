"""In which order tests run.

Tests that need nothing but Python come first, since they fail within minutes. Of those with real
parts, the long chains that one worker runs alone come before the rest, so that no worker is left
with one at the end. `FAIRWAY_ORDER=SEED` shuffles modules, and tests in them, so that whatever
counts on an earlier test is found out.
"""

from __future__ import annotations

import os
import random
from collections import Counter

import pytest

SEED = os.environ.get("FAIRWAY_ORDER", "")


def pytest_report_header() -> str:
    return f"order: FAIRWAY_ORDER={SEED}" if SEED else ""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    chains = Counter(chain_of(item) for item in items)
    if SEED:
        places = {(_module(item), item.nodeid): random.Random(f"{SEED} {item.nodeid}").random()
                  for item in items}  # fmt: skip
        modules = {module: random.Random(f"{SEED} {module}").random() for module, _ in places}
        items.sort(key=lambda item: (modules[_module(item)], places[_module(item), item.nodeid]))
    items.sort(key=lambda item: (_is_real(item), -chains[chain_of(item)] if chain_of(item) else 0))


def _is_real(item: pytest.Item) -> bool:
    return item.get_closest_marker("real") is not None


def _module(item: pytest.Item) -> str:
    return item.nodeid.partition("::")[0]


def chain_of(item: pytest.Item) -> str:
    """The group whose tests one worker runs one after the other; empty for a test by itself."""
    group = item.get_closest_marker("xdist_group")
    return str(group.args[0]) if group is not None else ""
