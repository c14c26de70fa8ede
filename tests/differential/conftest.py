"""Servers for the differential test: one embedded hub and one real control plane per kubectl.

Groups leave cluster-wide objects behind, so the runs of two kubectl versions never share a server.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.differential import embedded
from tests.kubernetes import binaries, control_plane
from tests.kubernetes.demand import demand

KubeconfigFor = Callable[[str], Path]


@pytest.fixture(scope="session")
def embedded_hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KubeconfigFor]:
    """Leads from a kubectl's label to the kubeconfig of its own embedded hub."""
    with contextlib.ExitStack() as stack:
        started: dict[str, Path] = {}

        def get(label: str) -> Path:
            if label not in started:
                folder = tmp_path_factory.mktemp("hub")
                started[label] = stack.enter_context(embedded.running(folder))
            return started[label]

        yield get


@pytest.fixture(scope="session")
def real_server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[KubeconfigFor]:
    """Leads from a kubectl's label to the kubeconfig of its own real control plane."""
    with contextlib.ExitStack() as stack:
        started: dict[str, Path] = {}

        def get(label: str) -> Path:
            if label not in started:
                for name in binaries.SERVER_PROGRAMS:
                    demand(lambda say, name=name: binaries.program(name, say), request.config)
                folder = tmp_path_factory.mktemp("real")
                started[label] = stack.enter_context(control_plane.running(folder)).kubeconfig
            return started[label]

        yield get


@pytest.fixture(scope="session")
def kubectl_for(request: pytest.FixtureRequest) -> Callable[[str], binaries.Kubectl]:
    """Leads from a label such as `1.20` to a kubectl of that version."""
    found: dict[str, binaries.Kubectl] = {}

    def look_up(label: str, say: binaries.Say) -> binaries.Kubectl:
        reasons = []
        for get in (
            binaries.newest_kubectl,
            binaries.distribution_kubectl,
            lambda _: binaries.path_kubectl(),
        ):
            if label not in found:
                try:
                    kubectl = get(say)
                    found.setdefault(kubectl.label, kubectl)
                except binaries.Missing as error:
                    reasons.append(str(error))
        if label not in found:
            raise binaries.Missing(f"no kubectl {label} here: {'; '.join(reasons)}")
        return found[label]

    return lambda label: demand(lambda say: look_up(label, say), request.config)
