"""How much is tried.

By default every run tries the same inputs, few enough for a commit. `HYPOTHESIS_PROFILE=long` tries
twenty times as many, fresh ones each time: to be run by hand, or by night.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

IS_LONG = os.environ.get("HYPOTHESIS_PROFILE") == "long"
_FACTOR = 20 if IS_LONG else 1


def budget(examples: int, *, steps: int = 50) -> settings:
    """The settings of a test that tries so many inputs in a short run."""
    return settings(
        max_examples=examples * _FACTOR,
        stateful_step_count=steps,
        derandomize=not IS_LONG,
        database=None,
        deadline=None,
        print_blob=True,
        # Inputs are large on purpose, and one hub serves all examples of a test.
        suppress_health_check=[
            HealthCheck.too_slow,
            HealthCheck.data_too_large,
            HealthCheck.large_base_example,
            HealthCheck.filter_too_much,
            HealthCheck.function_scoped_fixture,
        ],
    )
