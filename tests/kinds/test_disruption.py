"""How many replicas may be missing, as the workload or its template says."""

from __future__ import annotations

from typing import Any

import pytest

from fairway.api import codec
from fairway.api.workload import Workload
from fairway.kinds.disruption import budget_of
from fairway.kinds.native import as_workload
from fairway.kinds.registry import built_in


def workload(budget: dict[str, Any] | None, **spec: Any) -> Workload:
    manifests = [{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}}]
    if budget is not None:
        kind = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget"}
        manifests.append({**kind, "metadata": {"name": "a"}, "spec": budget})
    body = {
        "apiVersion": "fairway.dev/v1alpha1",
        "kind": "Workload",
        "metadata": {"name": "a", "namespace": "default"},
        "spec": {"mode": "Divided", "template": {"manifests": manifests}, **spec},
    }
    return codec.decode(body, Workload)


ROWS: dict[str, tuple[dict[str, Any] | None, dict[str, Any], int | None]] = {
    "nobody has said": (None, {"replicas": 4}, None),
    "the workload says": (None, {"replicas": 4, "disruption": {"maxUnavailable": 2}}, 2),
    "the workload is heard first": ({"maxUnavailable": 3}, {"disruption": {}}, 1),
    "so many may be missing": ({"maxUnavailable": 3}, {"replicas": 4}, 3),
    "so many must be there": ({"minAvailable": 3}, {"replicas": 4}, 1),
    "more must be there than there are": ({"minAvailable": 9}, {"replicas": 4}, 0),
    "a part may be missing, rounded up": ({"maxUnavailable": "30%"}, {"replicas": 4}, 2),
    "a part must be there, rounded up": ({"minAvailable": "70%"}, {"replicas": 4}, 1),
    "what cannot be read says nothing": ({"maxUnavailable": "some"}, {"replicas": 4}, None),
    "one replica where none is named": ({"minAvailable": "50%"}, {}, 0),
}


@pytest.mark.parametrize(("budget", "spec", "want"), ROWS.values(), ids=list(ROWS))
def test_the_budget_is(
    budget: dict[str, Any] | None, spec: dict[str, Any], want: int | None
) -> None:
    assert budget_of(workload(budget, **spec)) == want


def test_a_native_service_says_it_by_an_annotation() -> None:
    body = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": "a",
            "namespace": "default",
            "labels": {"fairway.dev/queue": "q"},
            "annotations": {"fairway.dev/max-unavailable": "2"},
        },
        "spec": {"replicas": 4, "template": {"spec": {"containers": [{"name": "main"}]}}},
    }
    found = as_workload(body, built_in())
    assert found is not None
    assert found["spec"]["disruption"] == {"maxUnavailable": 2}
