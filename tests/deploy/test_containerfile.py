"""The image's own steps make an environment from which the hub starts, and need nothing else.

No container engine can be had where these tests run, so the steps are read from the Containerfile
and carried out in an empty folder, by pip and the package index as this machine is set up for them.
"""

from __future__ import annotations

import ssl
import subprocess
import time
import urllib.request
from pathlib import Path

import pytest

from tests.deploy.containerfile import Image
from tests.ports import own_ports
from tests.waiting import PATIENCE_SECONDS

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"


def until_ready(hub: subprocess.Popen[str], port: int, log: Path) -> None:
    """Until the hub says that it is ready; its certificate is one of its own making."""
    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    until = time.monotonic() + PATIENCE_SECONDS
    while hub.poll() is None and time.monotonic() < until:
        try:
            with urllib.request.urlopen(f"https://127.0.0.1:{port}/readyz", context=trusting):
                return
        except OSError:
            time.sleep(0.1)
    raise AssertionError(f"the hub did not get ready: {log.read_text()}")


@pytest.mark.real
def test_the_steps_of_the_image_make_a_hub_that_starts(tmp_path: Path) -> None:
    text = (DEPLOY / "Containerfile").read_text()
    ignored = (DEPLOY / "Containerfile.dockerignore").read_text().split()
    image = Image(root=tmp_path / "root", context=ROOT, ignored=ignored)
    image.build(text)
    installed = image.root / "opt" / "fairway" / "bin" / "python"
    needs = subprocess.run(
        [image.python, "-m", "pip", "--python", str(installed), "check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert needs.returncode == 0, needs.stdout + needs.stderr

    empty = tmp_path / "empty"
    empty.mkdir()
    (port,) = own_ports(1)
    log = tmp_path / "log"
    command = [*image.entrypoint, "up", "--demo", "--data", "data", "--port", str(port)]
    with log.open("w") as said:
        hub = subprocess.Popen(
            command, cwd=empty, env=image.environment(), stdout=said, stderr=said
        )
        try:
            until_ready(hub, port, log)
        finally:
            hub.terminate()
            code = hub.wait(PATIENCE_SECONDS)
    assert code == 0, log.read_text()
