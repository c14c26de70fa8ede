"""Controllers of other projects that statuses are recorded from, built from their Go modules.

A program is built once from a copy of its module's source, with the module's own pins, and kept in
the cache of tests.kubernetes.binaries; nothing of it is committed here. It is started as its
project deploys it, with its definitions and webhooks, only that webhooks are called by address.
"""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from fairway.api.errors import ApiError
from fairway.client import Client, ClientError
from tests.differential import published
from tests.kubernetes import binaries, control_plane
from tests.ports import own_ports

Json = dict[str, Any]
BUILD_SECONDS_MAX = 3600
READY_SECONDS_MAX = 60


@dataclass(frozen=True, kw_only=True)
class Operator:
    """A controller of custom kinds."""

    name: str  # of its module in tests.differential.published
    package: str
    arguments: tuple[str, ...]  # with {folder}, {kubeconfig} and {port} of its webhooks
    webhooks: str = ""  # the module's file of webhook configurations
    asks: Json = field(default_factory=dict)  # is admitted only once its webhooks answer
    certificates: str = "certificates"  # where in its folder it looks for those of its webhooks
    settings: Json = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    needs: tuple[Json, ...] = ()  # objects that its project deploys with it
    # Whether it begins once its kubelet has put certificates in _MOUNTED, whatever they are: those
    # that it serves its webhooks with are in the folder of its own.
    is_mounted: bool = False
    beside: tuple[Operator, ...] = ()  # those that it needs

    @property
    def source(self) -> str:
        return f"{self.name} {published.MODULES[self.name].version}"


_POD: Json = {"containers": [{"name": "pytorch", "image": "registry.example/asks:1"}]}


def configured(name: str, group: str, *, package: str, webhooks: str) -> Operator:
    """One that reads its settings from a file, as those of the Kubernetes project do."""
    return Operator(
        name=name,
        package=package,
        webhooks=webhooks,
        asks={
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "asks", "namespace": "default"},
            "spec": _POD,
        },
        arguments=("--config={folder}/settings.yaml",),
        settings={
            "apiVersion": f"config.{group}/v1alpha1",
            "kind": "Configuration",
            "leaderElection": {"leaderElect": False},
            "internalCertManagement": {"enable": False},
            "metrics": {"bindAddress": "0"},
            "health": {"healthProbeBindAddress": "0"},
            "webhook": {
                "port": "{port}",
                "host": "127.0.0.1",
                "certDir": "{folder}/certificates",
            },
        },
    )


JOBSET = configured(
    "jobset",
    "jobset.x-k8s.io",
    package=".",
    webhooks="config/components/webhook/manifests.yaml",
)
TRAINING = Operator(
    name="training-operator",
    package="./cmd/training-operator.v1",
    webhooks="manifests/base/webhook/manifests.yaml",
    asks={
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": "asks", "namespace": "default"},
        "spec": {"pytorchReplicaSpecs": {"Worker": {"template": {"spec": _POD}}}},
    },
    arguments=(
        "--metrics-bind-address=0",
        "--health-probe-bind-address=0",
        "--webhook-server-port={port}",
    ),
    # Below the folder for temporary files, which is its own.
    certificates="k8s-webhook-server/serving-certs",
    is_mounted=True,
    needs=(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kubeflow"}},
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "training-operator-webhook-cert", "namespace": "kubeflow"},
        },
    ),
)
_MOUNTED = Path("/tmp/k8s-webhook-server/serving-certs/tls.crt")


def start(plane: control_plane.ControlPlane, client: Client, operator: Operator) -> None:
    """Starts a controller on a control plane; gives up where it does not answer."""
    if operator.name in plane.by_name:
        return
    for one in operator.beside:
        start(plane, client, one)
    module = _module(operator)
    program = _program(operator, module)
    definitions = [
        yaml.safe_load(path.read_text())
        for path in sorted(published.definitions(operator.name).glob("*.yaml"))
    ]
    for body in definitions:
        client.apply(body, force=True)
    for body in definitions:
        _wait_until_listed(plane, body["metadata"]["name"])
    with Client.connect(str(plane.kubeconfig)) as knowing:
        for body in operator.needs:
            knowing.apply(body, force=True)
    folder = plane.folder / operator.name
    certificates = folder / operator.certificates
    certificates.mkdir(parents=True)
    for name in ("crt", "key"):
        shutil.copy(plane.folder / f"serving.{name}", certificates / f"tls.{name}")
    if operator.is_mounted:
        _MOUNTED.parent.mkdir(parents=True, exist_ok=True)
        _MOUNTED.touch()
    port = own_ports(1)[0]
    if operator.settings:
        text = yaml.safe_dump(operator.settings).replace("{folder}", str(folder))
        (folder / "settings.yaml").write_text(text.replace("'{port}'", str(port)))
    own = {"folder": folder, "port": port, "kubeconfig": plane.kubeconfig}
    words = [one.format(**own) for one in operator.arguments]
    given = {name: text.format(**own) for name, text in operator.environment.items()}
    environment = {"KUBECONFIG": str(plane.kubeconfig), "TMPDIR": str(folder), **given}
    control_plane.start(plane, operator.name, [str(program), *words], environment)
    if operator.webhooks:
        _install_webhooks(plane, client, operator, module / operator.webhooks, port)
        _wait_until_called(plane, client, operator)


def _wait_until_listed(plane: control_plane.ControlPlane, name: str) -> None:
    """Discovery tells of a new kind somewhat later than the definition is accepted."""
    until = time.monotonic() + READY_SECONDS_MAX
    while True:
        try:
            with Client.connect(str(plane.kubeconfig)) as client:
                client.resolve(name)
                return
        except ClientError:
            if time.monotonic() > until:
                raise
            time.sleep(0.5)


def _install_webhooks(
    plane: control_plane.ControlPlane, client: Client, operator: Operator, file: Path, port: int
) -> None:
    authority = base64.b64encode((plane.folder / "serving.crt").read_bytes()).decode()
    for one in filter(None, yaml.safe_load_all(file.read_text())):
        for webhook in one["webhooks"]:
            path = webhook["clientConfig"]["service"]["path"]
            address = f"https://127.0.0.1:{port}{path}"
            webhook["clientConfig"] = {"url": address, "caBundle": authority}
        one["metadata"]["name"] = f"{operator.name}-{one['metadata']['name']}"
        client.create(one)


def _wait_until_called(
    plane: control_plane.ControlPlane, client: Client, operator: Operator
) -> None:
    """An object that is not kept asks the webhooks."""
    until = time.monotonic() + READY_SECONDS_MAX
    while True:
        try:
            client.create(operator.asks, dry_run=True)
        except (ClientError, ApiError) as error:
            if time.monotonic() > until:
                log = (plane.folder / f"{operator.name}.log").read_text()[-1500:]
                raise RuntimeError(f"{operator.source} does not answer: {error}\n{log}") from error
            time.sleep(0.5)
        else:
            return


def _module(operator: Operator) -> Path:
    """The source of a module, in Go's own cache."""
    module = published.MODULES[operator.name]
    toolchain = binaries.go()
    done = subprocess.run(
        [str(toolchain), "mod", "download", "-json", f"{module.path}@{module.version}"],
        capture_output=True, text=True, check=True, cwd=tempfile.gettempdir(),
        env=binaries.go_environment(toolchain),
    )  # fmt: skip
    told = json.loads(done.stdout)
    if told["Sum"] != module.sum:
        raise binaries.Missing(f"{operator.source} has sum {told['Sum']}, not {module.sum}")
    return Path(told["Dir"])


def _program(operator: Operator, module: Path) -> Path:
    version = published.MODULES[operator.name].version
    kept = binaries.cache() / "operators" / f"{operator.name}-{version}"
    if kept.exists():
        return kept
    kept.parent.mkdir(parents=True, exist_ok=True)
    toolchain = binaries.go()
    print(f"building {operator.source}; this is done once and takes some minutes", flush=True)
    with tempfile.TemporaryDirectory(dir=kept.parent) as folder:
        source = Path(folder) / "source"
        shutil.copytree(module, source, copy_function=shutil.copyfile)
        made = Path(folder) / "made"
        subprocess.run(
            [str(toolchain), "build", "-mod=mod", "-ldflags=-s -w", "-buildvcs=false",
             "-o", str(made), operator.package],
            check=True, cwd=source, env=binaries.go_environment(toolchain),
            timeout=BUILD_SECONDS_MAX,
        )  # fmt: skip
        made.replace(kept)
    return kept
