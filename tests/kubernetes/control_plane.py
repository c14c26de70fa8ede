"""A real Kubernetes control plane on loopback: etcd, kube-apiserver, two controllers.

The controller manager runs only garbage collection and namespace deletion: these belong to what a
client of the API sees (cascading deletion, namespaces that end), while controllers that would
create Pods for Jobs would only make outcomes vary. A whole one, for recordings, has all controllers
and the scheduler, and soon gives up nodes that fall silent. Everything lives in one folder and ends
with `stop`, or with the process that started it.
"""

from __future__ import annotations

import contextlib
import datetime
import ipaddress
import os
import shutil
import signal
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID

from tests.kubernetes import binaries
from tests.ports import own_ports

READY_SECONDS_MAX = 240
TOKENS = {
    "admin-token": 'admin,admin,"system:masters"',
    "controllers-token": 'system:kube-controller-manager,controllers,"system:masters"',
}
_FEW_CONTROLLERS = ("--controllers=garbage-collector-controller,namespace-controller",)
# Nodes that are silent for this long are lost; pods leave those that are lost two seconds later.
_WHOLE_CONTROLLERS = ("--node-monitor-period=1s", "--node-monitor-grace-period=20s")
# Without the controller that makes service accounts, this plugin would refuse all Pods.
_NO_ACCOUNTS = ("--disable-admission-plugins=ServiceAccount",)
_IMPATIENT_SERVER = (
    "--default-not-ready-toleration-seconds=2",
    "--default-unreachable-toleration-seconds=2",
)


@dataclass(kw_only=True)
class ControlPlane:
    """A running control plane; `kubeconfig` names its address and an administrator's token."""

    folder: Path
    kubeconfig: Path
    url: str
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)
    commands: dict[str, list[str]] = field(default_factory=dict)
    by_name: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def restart(self, name: str) -> None:
        """Kills one process and starts it anew."""
        self.kill(name)
        start(self, name, self.commands[name])

    def kill(self, name: str) -> None:
        """Kills one process, which may be started again."""
        process = self.by_name.pop(name)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        self.processes.remove(process)

    def wait_until_ready(self) -> None:
        _wait_until_ready(self)

    def stop(self) -> None:
        """Ends every process for good."""
        for process in reversed(self.processes):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@contextlib.contextmanager
def running(
    folder: Path,
    say: binaries.Say = binaries.silent,
    *,
    is_whole: bool = False,
    has_accounts: bool = False,
) -> Iterator[ControlPlane]:
    """Starts a control plane in `folder` and yields it when it is ready.

    With `has_accounts`, pods need a service account, as they do in a real cluster; a whole control
    plane makes those.
    """
    names = binaries.WHOLE_PROGRAMS if is_whole else binaries.SERVER_PROGRAMS
    programs = {name: binaries.program(name, say) for name in names}
    _write_certificates(folder)
    ports = own_ports(3)
    plane = ControlPlane(
        folder=folder, kubeconfig=folder / "kubeconfig", url=f"https://127.0.0.1:{ports[2]}"
    )
    _write_access(plane)
    try:
        start(plane, "etcd", _etcd(programs["etcd"], folder, ports[0], ports[1]))
        server = _apiserver(programs, folder, ports[0], ports[2])
        server += _IMPATIENT_SERVER if is_whole else ()
        server += () if has_accounts else _NO_ACCOUNTS
        start(plane, "kube-apiserver", server)
        _wait_until_ready(plane)
        controllers = _WHOLE_CONTROLLERS if is_whole else _FEW_CONTROLLERS
        start(plane, "kube-controller-manager", [*_controllers(programs, folder), *controllers])
        if is_whole:
            start(plane, "kube-scheduler", _scheduler(programs, folder))
        yield plane
    finally:
        plane.stop()


def bound_to_us(command: list[str]) -> list[str]:
    """The command, made to die with this process even if that is killed, where setpriv exists."""
    return ["setpriv", "--pdeathsig", "KILL", *command] if shutil.which("setpriv") else command


def kubeconfig_text(url: str, token: str, certificate: Path | None) -> str:
    """A kubeconfig of one cluster and one user."""
    cluster: dict[str, str] = {"server": url}
    if certificate is not None:
        cluster["certificate-authority"] = str(certificate)
    return yaml.safe_dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "test",
            "clusters": [{"name": "test", "cluster": cluster}],
            "users": [{"name": "test", "user": {"token": token}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
        }
    )


def _etcd(program: Path, folder: Path, client: int, peer: int) -> list[str]:
    return [
        str(program),
        f"--data-dir={folder / 'etcd'}",
        f"--listen-client-urls=http://127.0.0.1:{client}",
        f"--advertise-client-urls=http://127.0.0.1:{client}",
        f"--listen-peer-urls=http://127.0.0.1:{peer}",
        "--unsafe-no-fsync",
        "--log-level=error",
    ]


def _apiserver(programs: dict[str, Path], folder: Path, etcd: int, port: int) -> list[str]:
    return [
        str(programs["kube-apiserver"]),
        f"--etcd-servers=http://127.0.0.1:{etcd}",
        f"--secure-port={port}",
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        "--endpoint-reconciler-type=none",
        f"--cert-dir={folder / 'own'}",
        f"--tls-cert-file={folder / 'serving.crt'}",
        f"--tls-private-key-file={folder / 'serving.key'}",
        f"--token-auth-file={folder / 'tokens.csv'}",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={folder / 'serving.key'}",
        f"--service-account-signing-key-file={folder / 'serving.key'}",
        "--authorization-mode=RBAC",
        "--allow-privileged=true",  # as in most clusters
        "--kubelet-preferred-address-types=InternalIP",
        "--service-cluster-ip-range=10.0.0.0/24",
        "--v=0",
    ]


def _controllers(programs: dict[str, Path], folder: Path) -> list[str]:
    return [
        str(programs["kube-controller-manager"]),
        f"--kubeconfig={folder / 'controllers.kubeconfig'}",
        f"--root-ca-file={folder / 'serving.crt'}",
        "--leader-elect=false",
        "--secure-port=0",
        "--kube-api-qps=500",
        "--kube-api-burst=500",
        "--v=0",
    ]


def _scheduler(programs: dict[str, Path], folder: Path) -> list[str]:
    return [
        str(programs["kube-scheduler"]),
        f"--kubeconfig={folder / 'controllers.kubeconfig'}",
        "--leader-elect=false",
        "--secure-port=0",
        "--kube-api-qps=500",
        "--kube-api-burst=500",
        "--v=0",
    ]


def start(
    plane: ControlPlane,
    name: str,
    command: list[str],
    environment: Mapping[str, str] | None = None,
) -> None:
    """Starts one more process of the control plane, which ends with it."""
    with (plane.folder / f"{name}.log").open("ab") as log:
        process = subprocess.Popen(
            bound_to_us(command), stdout=log, stderr=log, stdin=subprocess.DEVNULL,
            start_new_session=True, cwd=plane.folder,
            env=None if environment is None else {**os.environ, **environment},
        )  # fmt: skip
    plane.processes.append(process)
    plane.commands[name] = command
    plane.by_name[name] = process


def _write_access(plane: ControlPlane) -> None:
    rows = [f"{token},{who}\n" for token, who in TOKENS.items()]
    (plane.folder / "tokens.csv").write_text("".join(rows), encoding="utf-8")
    for name, token in (
        ("kubeconfig", "admin-token"),
        ("controllers.kubeconfig", "controllers-token"),
    ):
        text = kubeconfig_text(plane.url, token, plane.folder / "serving.crt")
        (plane.folder / name).write_text(text, encoding="utf-8")


def _write_certificates(folder: Path) -> None:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test")])
    now = datetime.datetime.now(datetime.UTC)
    names = x509.SubjectAlternativeName(
        [x509.IPAddress(ipaddress.ip_address("127.0.0.1")), x509.DNSName("localhost")]
    )
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=2))
        .add_extension(names, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    (folder / "serving.crt").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )
    (folder / "serving.key").touch(mode=0o600)
    (folder / "serving.key").write_bytes(private)


def _wait_until_ready(plane: ControlPlane) -> None:
    context = ssl.create_default_context(cafile=str(plane.folder / "serving.crt"))
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    until = time.monotonic() + READY_SECONDS_MAX
    while True:
        with (
            contextlib.suppress(urllib.error.URLError, OSError),
            urllib.request.urlopen(f"{plane.url}/readyz", context=context, timeout=5),
        ):
            return
        ended = [each for each in plane.processes if each.poll() is not None]
        if ended or time.monotonic() > until:
            logs = "\n".join(log.read_text()[-1500:] for log in plane.folder.glob("*.log"))
            raise RuntimeError(f"the control plane did not become ready:\n{logs}")
        time.sleep(0.05)
