"""Controllers of other projects that statuses are recorded from, built from their Go modules.

A program is built once from a copy of its module's source, with the module's own pins, and kept by
tests.peers.programs; nothing of it is committed here. It is started as its project deploys it, with
its definitions and webhooks, only that webhooks are called by address.
"""

from __future__ import annotations

import base64
import re
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from fairway.api.errors import ApiError
from fairway.client import Client, ClientError
from tests.differential import published
from tests.kubernetes import control_plane
from tests.peers import programs
from tests.ports import own_ports

Json = dict[str, Any]
READY_SECONDS_MAX = 60


@dataclass(frozen=True, kw_only=True)
class Operator:
    """A controller of custom kinds."""

    name: str  # of its module in tests.differential.published
    package: str
    arguments: tuple[str, ...]  # with {folder}, {kubeconfig} and {port} of its webhooks
    webhooks: str = ""  # the module's file of webhook configurations
    called: str = ""  # a pattern of the paths of its webhooks that are called; empty: all
    asks: Json = field(default_factory=dict)  # is admitted only once its webhooks answer
    certificates: str = "certificates"  # where in its folder it looks for those of its webhooks
    settings: Json = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    needs: tuple[Json, ...] = ()  # objects that its project deploys with it
    # Whether it begins once its kubelet has put certificates in _MOUNTED, whatever they are: those
    # that it serves its webhooks with are in the folder of its own.
    is_mounted: bool = False
    # A folder below /etc where it reads certificates whatever its settings say. It sees an /etc of
    # its own, that of the machine is not touched.
    certificates_below_etc: str = ""
    beside: tuple[Operator, ...] = ()  # those that it needs

    @property
    def module(self) -> published.Module:
        return published.MODULES[self.name]

    @property
    def source(self) -> str:
        return f"{self.name} {self.module.version}"

    def program(self) -> Path:
        """The path of it, built if need be."""
        return programs.program(self.name, self.module, self.package)


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


def define(plane: control_plane.ControlPlane, client: Client, operator: Operator) -> None:
    """Makes the kinds of a controller known to a control plane."""
    definitions = [
        yaml.safe_load(path.read_text())
        for path in sorted(published.definitions(operator.name).glob("*.yaml"))
    ]
    for body in definitions:
        client.apply(body, force=True)
    for body in definitions:
        wait_until_listed(plane, body["metadata"]["name"])


def start(plane: control_plane.ControlPlane, client: Client, operator: Operator) -> None:
    """Starts a controller on a control plane; gives up where it does not answer."""
    if operator.name in plane.by_name:
        return
    for item in operator.beside:
        start(plane, client, item)
    program = operator.program()
    define(plane, client, operator)
    with Client.connect(str(plane.kubeconfig)) as knowing:
        for body in operator.needs:
            knowing.apply(body, force=True)
    folder = plane.folder / operator.name
    certificates = folder / operator.certificates
    _copy_certificates(plane.folder, certificates)
    if operator.is_mounted:
        _MOUNTED.parent.mkdir(parents=True, exist_ok=True)
        _MOUNTED.touch()
    port = own_ports(1)[0]
    if operator.settings:
        text = yaml.safe_dump(operator.settings).replace("{folder}", str(folder))
        (folder / "settings.yaml").write_text(text.replace("'{port}'", str(port)))
    own = {"folder": folder, "port": port, "kubeconfig": plane.kubeconfig}
    words = [argument.format(**own) for argument in operator.arguments]
    given = {name: text.format(**own) for name, text in operator.environment.items()}
    environment = {"KUBECONFIG": str(plane.kubeconfig), "TMPDIR": str(folder), **given}
    command = [*_with_own_etc(operator, plane.folder, folder), str(program), *words]
    control_plane.start(plane, operator.name, command, environment)
    if operator.webhooks:
        _install_webhooks(plane, client, operator, port)
        _wait_until_called(plane, client, operator)


def _copy_certificates(source: Path, target: Path) -> None:
    target.mkdir(parents=True)
    for name in ("crt", "key"):
        shutil.copy(source / f"serving.{name}", target / f"tls.{name}")


def _with_own_etc(operator: Operator, certificates: Path, folder: Path) -> list[str]:
    """What to begin its command with, so that it sees an /etc of its own where it needs one."""
    if not operator.certificates_below_etc:
        return []
    _copy_certificates(certificates, folder / "etc" / operator.certificates_below_etc)
    script = 'mount --bind "$0" /etc && exec "$@"'
    return ["unshare", "--map-root-user", "--mount", "sh", "-c", script, str(folder / "etc")]


def wait_until_listed(plane: control_plane.ControlPlane, name: str) -> None:
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
    plane: control_plane.ControlPlane, client: Client, operator: Operator, port: int
) -> None:
    file = published.source(operator.module) / operator.webhooks
    authority = base64.b64encode((plane.folder / "serving.crt").read_bytes()).decode()
    for document in filter(None, yaml.safe_load_all(file.read_text())):
        document["webhooks"] = [
            each
            for each in document["webhooks"]
            if re.search(operator.called, each["clientConfig"]["service"]["path"])
        ]
        for webhook in document["webhooks"]:
            path = webhook["clientConfig"]["service"]["path"]
            address = f"https://127.0.0.1:{port}{path}"
            webhook["clientConfig"] = {"url": address, "caBundle": authority}
        document["metadata"]["name"] = f"{operator.name}-{document['metadata']['name']}"
        client.create(document)


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
