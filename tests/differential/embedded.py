"""An embedded hub in a process of its own, started as a user starts it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import kubernetes
import urllib3
from kubernetes.client.exceptions import ApiException

from tests.kubernetes.control_plane import bound_to_us
from tests.ports import own_ports

READY_SECONDS_MAX = 120
COMMAND = [sys.executable, "-c", "from fairway.cli.main import main; main()"]


@contextlib.contextmanager
def running(folder: Path) -> Iterator[Path]:
    """Starts a hub with its data in `folder` and yields its kubeconfig when it is ready."""
    port = own_ports(1)[0]
    log = folder / "hub.log"
    with log.open("wb") as handle:
        process = subprocess.Popen(
            bound_to_us([*COMMAND, "up", "--data", str(folder / "data"), "--port", str(port)]),
            stdout=handle, stderr=handle, stdin=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
    try:
        kubeconfig = folder / "data" / "kubeconfig"
        _wait_until_ready(process, kubeconfig, log)
        yield kubeconfig
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _wait_until_ready(process: subprocess.Popen[bytes], kubeconfig: Path, log: Path) -> None:
    until = time.monotonic() + READY_SECONDS_MAX
    while not (kubeconfig.exists() and _answers(kubeconfig)):
        if process.poll() is not None or time.monotonic() > until:
            raise RuntimeError(f"the hub did not become ready:\n{log.read_text()[-3000:]}")
        time.sleep(0.05)


def _answers(kubeconfig: Path) -> bool:
    configuration = kubernetes.client.Configuration()
    configuration.retries = False
    kubernetes.config.load_kube_config(
        config_file=str(kubeconfig), client_configuration=configuration
    )
    with kubernetes.client.ApiClient(configuration) as client:
        try:
            kubernetes.client.VersionApi(client).get_code()
        except (urllib3.exceptions.HTTPError, ApiException):
            return False
    return True
