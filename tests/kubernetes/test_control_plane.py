"""The control plane that other tests compare with is a real and working one."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.kubernetes import binaries, control_plane
from tests.kubernetes.demand import demand

pytestmark = pytest.mark.real


def call(plane: control_plane.ControlPlane, kubectl: Path, *words: str) -> str:
    command = [str(kubectl), f"--kubeconfig={plane.kubeconfig}", *words]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout


def test_it_says_the_version_that_was_asked_for(
    real: control_plane.ControlPlane, request: pytest.FixtureRequest
) -> None:
    kubectl = demand(binaries.newest_kubectl, request.config)
    assert binaries.VERSION in call(real, kubectl.path, "get", "--raw", "/version")


def test_what_a_deleted_namespace_held_is_gone(
    real: control_plane.ControlPlane, request: pytest.FixtureRequest
) -> None:
    kubectl = demand(binaries.newest_kubectl, request.config).path
    call(real, kubectl, "create", "namespace", "short-lived")
    call(real, kubectl, "create", "configmap", "inside", "--namespace=short-lived")
    call(real, kubectl, "delete", "namespace", "short-lived", "--wait=true", "--timeout=100s")
    assert call(real, kubectl, "get", "configmap", "--namespace=short-lived") == ""


def test_no_process_outlives_it(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    for name in binaries.SERVER_PROGRAMS:
        demand(lambda say, name=name: binaries.program(name, say), request.config)
    with control_plane.running(tmp_path) as plane:
        processes = list(plane.processes)
        assert all(process.poll() is None for process in processes)
    assert len(processes) == len(binaries.SERVER_PROGRAMS)
    assert all(process.poll() is not None for process in processes)
