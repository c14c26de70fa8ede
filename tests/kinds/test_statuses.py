"""What kinds read from statuses as their own controllers write them."""

from __future__ import annotations

import pytest

from fairway.kinds.registry import built_in
from tests.kinds.recorded import Step, steps


@pytest.mark.parametrize("step", steps(), ids=lambda other: other.name)
def test_a_recorded_status_is_understood(step: Step) -> None:
    kind = built_in().of(step.found)
    assert kind is not None
    observed = kind.read(step.found)
    assert {name: getattr(observed, name) for name in step.reads} == step.reads
