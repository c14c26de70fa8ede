"""The embedded hub answers as a real kube-apiserver does, but for a committed list.

One script, two servers: the outcomes of the real one are recorded, the hub is compared with the
recording in every run, and where a real one can be had the recording itself is proved true: here
with the newest kubectl, with the oldest by `python -m tests.differential.record --check`
(docs/decisions/0028).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.differential import comparison, published, record, steps
from tests.differential.conftest import KubeconfigFor
from tests.differential.runner import Run
from tests.kubernetes.binaries import Kubectl
from tests.kubernetes.demand import demand

LABELS = ("1.20", "1.36")
NEWEST = LABELS[-1]
GROUPS = {group.name: group for group in steps.groups()}
KubectlFor = Callable[[str], Kubectl]

pytestmark = pytest.mark.real


def runs(server: str, *labels: str) -> pytest.MarkDecorator:
    """One run for each group and kubectl; those of one kubectl share a server and a worker."""
    table = [
        pytest.param(
            *(group, label),
            id=f"{group}, kubectl {label}",
            marks=pytest.mark.xdist_group(f"{server}, kubectl {label}"),
        )
        for label in labels
        for group in GROUPS
    ]
    return pytest.mark.parametrize(("group", "label"), table)


@runs("hub", *LABELS)
def test_the_hub_answers_as_the_recorded_kubernetes_does(
    group: str,
    label: str,
    embedded_hub: KubeconfigFor,
    kubectl_for: KubectlFor,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    recorded = record.read(group, label)
    assert recorded, f"nothing is recorded: python -m tests.differential.record {group}"
    obtain_published(group, request)
    run = Run(
        group=GROUPS[group],
        kubeconfig=embedded_hub(label),
        kubectl=kubectl_for(label),
        folder=tmp_path,
    )
    outcomes = comparison.unstamped(run.outcomes(), comparison.stamps())
    found = list(comparison.differences(recorded, outcomes))
    entries = [
        each
        for each in comparison.accepted()
        if each.group == group and (not each.kubectl or label in each.kubectl)
    ]
    new = [each for each in found if not any(entry.covers(each) for entry in entries)]
    gone = [entry for entry in entries if not any(entry.covers(each) for each in found)]
    assert not new, f"{len(new)} differences are not in the list:\n" + "\n".join(map(str, new))
    assert not gone, "listed differences that no longer occur:\n" + "\n".join(map(str, gone))


@runs("Kubernetes", NEWEST)
def test_the_recording_is_what_a_real_kubernetes_answers(
    group: str,
    label: str,
    real_server: KubeconfigFor,
    kubectl_for: KubectlFor,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    obtain_published(group, request)
    run = Run(
        group=GROUPS[group],
        kubeconfig=real_server(label),
        kubectl=kubectl_for(label),
        folder=tmp_path,
    )
    outcomes = run.outcomes()
    recorded = record.read(group, label) or {}
    assert list(recorded) == list(outcomes)
    found = list(comparison.differences(recorded, outcomes))
    assert not found, "\n".join(map(str, found))


def obtain_published(group: str, request: pytest.FixtureRequest) -> None:
    for module in GROUPS[group].published:
        demand(lambda say, module=module: published.definitions(module, say), request.config)
