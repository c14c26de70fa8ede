"""Tables show what a Kubernetes 1.36 showed for the same objects (`data/tables.jsonl`)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fairway.resources.builtin import builtin_resources, human_age

ROWS = [
    json.loads(line)
    for line in (Path(__file__).parent / "data" / "tables.jsonl").read_text().splitlines()
]
BY_KIND = {resource.kind: resource for resource in builtin_resources()}

COLUMNS = {
    "Pod": "NAME READY STATUS RESTARTS AGE | IP NODE NOMINATED-NODE READINESS-GATES",
    "Service": "NAME TYPE CLUSTER-IP EXTERNAL-IP PORT(S) AGE | SELECTOR",
    "Job": "NAME STATUS COMPLETIONS DURATION AGE | CONTAINERS IMAGES SELECTOR",
    "Deployment": "NAME READY UP-TO-DATE AVAILABLE AGE | CONTAINERS IMAGES SELECTOR",
    "StatefulSet": "NAME READY AGE | CONTAINERS IMAGES",
    "Event": "LAST-SEEN TYPE REASON OBJECT MESSAGE | SUBOBJECT SOURCE FIRST-SEEN COUNT NAME",
    "HorizontalPodAutoscaler": "NAME REFERENCE TARGETS MINPODS MAXPODS REPLICAS AGE | ",
    "ResourceClaim": "NAME STATE AGE | ",
    "ResourceClaimTemplate": "NAME AGE | ",
    "PriorityClass": "NAME VALUE GLOBAL-DEFAULT AGE PREEMPTIONPOLICY | ",
    "RoleBinding": "NAME ROLE AGE | USERS GROUPS SERVICEACCOUNTS",
}


@pytest.mark.parametrize(
    "row", ROWS, ids=lambda row: f"{row['object']['kind']}-{row['object']['metadata']['name']}"
)
def test_an_object_is_shown_as_kubernetes_shows_it(row: dict[str, Any]) -> None:
    resource = BY_KIND[row["object"]["kind"]]
    assert resource.cells is not None
    assert resource.cells(row["object"], row["now"]) == row["cells"]


@pytest.mark.parametrize("kind", COLUMNS)
def test_columns_are_those_of_kubectl(kind: str) -> None:
    def names(priority: int) -> str:
        chosen = [column for column in BY_KIND[kind].columns if column.priority == priority]
        return " ".join(item.name.upper().replace(" ", "-") for item in chosen)

    assert f"{names(0)} | {names(1)}" == COLUMNS[kind]


@pytest.mark.parametrize("kind", sorted(BY_KIND))
def test_a_table_has_one_cell_for_each_column_even_of_an_empty_object(kind: str) -> None:
    resource = BY_KIND[kind]
    if resource.cells is not None:
        assert len(resource.cells({}, 0.0)) == len(resource.columns)


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (-5, "<invalid>"),
        (-1.5, "0s"),
        (0, "0s"),
        (119.9, "119s"),
        (120, "2m"),
        (303, "5m3s"),
        (600, "10m"),
        (3 * 3600 - 1, "179m"),
        (3 * 3600, "3h"),
        (7 * 3600 + 61, "7h1m"),
        (8 * 3600, "8h"),
        (47 * 3600, "47h"),
        (52 * 3600, "2d4h"),
        (48 * 3600, "2d"),
        (8 * 86400, "8d"),
        (729 * 86400, "729d"),
        (742 * 86400, "2y12d"),
        (730 * 86400, "2y"),
        (9 * 365 * 86400, "9y"),
    ],
)
def test_ages_have_two_or_three_figures(seconds: float, shown: str) -> None:
    assert human_age(seconds) == shown
