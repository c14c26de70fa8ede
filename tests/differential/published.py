"""Published custom resource definitions of other projects, taken from their Go modules.

They are fetched at test time at pinned versions, checked against pinned sums, kept in the cache,
and never committed here. A module that cannot be had raises `Missing`, as a program does.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.kubernetes import binaries
from tests.kubernetes.binaries import Missing


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """Where a project keeps its definitions."""

    path: str
    version: str
    sum: str
    folder: str


MODULES = {
    "jobset": Module(
        path="sigs.k8s.io/jobset",
        version="v0.8.0",
        sum="h1:80cJcPld+IMdKFOqzEW4et3Y6lGAPcP8YmBZ+aiKGYA=",
        folder="config/components/crd/bases",
    ),
    "jobset-later": Module(
        path="sigs.k8s.io/jobset",
        version="v0.11.0",
        sum="h1:1r2uTNQmylnqG/WCSSDADgNkHryvyUaCNCOgvSPWpN8=",
        folder="config/components/crd/bases",
    ),
    "training-operator": Module(
        path="github.com/kubeflow/training-operator",
        version="v1.8.1",
        sum="h1:mVvoBSCInbMBX0gGSn4+Ihj3ycwoLO1iEAw+0qPhQfc=",
        folder="manifests/base/crds",
    ),
    "trainer": Module(
        path="github.com/kubeflow/trainer/v2",
        version="v2.0.0",
        sum="h1:mnQSR9iPKItxyUR8mq66XsmxqKNVHwr9YYOB7BTU9dU=",
        folder="manifests/base/crds",
    ),
    "kuberay": Module(
        path="github.com/ray-project/kuberay/ray-operator",
        version="v1.3.0",
        sum="h1:c7PKkepTtkDpnAXhZVt5MxSVZC8Jh2s2BvKUvtgCwR0=",
        folder="config/crd/bases",
    ),
    "volcano": Module(
        path="volcano.sh/volcano",
        version="v1.10.0",
        sum="h1:+GzQinGgeV0j58WpWpxByOXgF+YfUPW55zghM8GqjF0=",
        folder="config/crd/volcano/bases",
    ),
    "lws": Module(
        path="sigs.k8s.io/lws",
        version="v0.7.0",
        sum="h1:qWfzX8+UBak+Hq0+m/PuE3uO0mp/3dmm5q/h/7z31A8=",
        folder="config/crd/bases",
    ),
    "mpi-operator": Module(
        path="github.com/kubeflow/mpi-operator",
        version="v0.6.0",
        sum="h1:RzzG03oyQIiHe/SH2k19N+Hp4QkxEsG2l9G1T7US+ys=",
        folder="manifests/base",
    ),
    "argo-workflows": Module(
        path="github.com/argoproj/argo-workflows/v3",
        version="v3.7.0",
        sum="h1:TDijZztm6dLruB7yZLH+Ps4OJKRwu0YSAJ4/NvceON0=",
        folder="manifests/base/crds/minimal",
    ),
    # The first version with JAXJob.
    "training-operator-jax": Module(
        path="github.com/kubeflow/training-operator",
        version="v1.9.2",
        sum="h1:w5McwkEb7J5QFRo8b8zR9DrgyLHNU2u03Srr9eyLJtc=",
        folder="manifests/base/crds",
    ),
    "kueue": Module(
        path="sigs.k8s.io/kueue",
        version="v0.19.2",
        sum="h1:mPNzr37u0nwI7ikST5QQl5gg6EgtYOAvC9ZbTgywdN8=",
        folder="config/components/crd/bases",
    ),
    "karmada": Module(
        path="github.com/karmada-io/karmada",
        version="v1.18.2",
        sum="h1:B1Eu3055LtTBndD/R2WcaS/bLvGwwVU1/3wXQjkIVN4=",
        folder="charts/karmada/_crds/bases/work",
    ),
    "ocm": Module(
        path="open-cluster-management.io/ocm",
        version="v1.2.0",
        sum="h1:X/NLLsgga99avuDV3CvOF9N64D18djodbGXF2mRcB6s=",
        folder="manifests/cluster-manager/hub/crds",
    ),
}


def definitions(name: str, say: binaries.Say = binaries.silent) -> Path:
    """A folder with the definitions that this project publishes."""
    module = MODULES[name]
    kept = binaries.cache() / "definitions" / f"{name}-{module.version}"
    if not kept.exists():
        with binaries.locked(kept.parent):
            if not kept.exists():
                _fetch(module, kept, say)
    return kept


def lay_out(name: str, folder: Path) -> None:
    """Copies the definitions of a project to `folder/name/`."""
    shutil.copytree(definitions(name), folder / name, dirs_exist_ok=True)


def source(module: Module, say: binaries.Say = binaries.silent) -> Path:
    """The source of a module, in Go's own cache, once its sum is known to be the pinned one."""
    toolchain = binaries.go(say)
    # Outside of any module, so that no go.mod adds wishes of its own.
    done = subprocess.run(
        [str(toolchain), "mod", "download", "-json", f"{module.path}@{module.version}"],
        capture_output=True, text=True, check=False, cwd=tempfile.gettempdir(),
        env=binaries.go_environment(toolchain),
    )  # fmt: skip
    try:
        told = json.loads(done.stdout)
    except ValueError:
        told = {"Error": done.stderr.strip()}
    if "Dir" not in told:
        raise Missing(f"{module.path}@{module.version}: {told.get('Error')}")
    if told["Sum"] != module.sum:
        raise Missing(f"{module.path}@{module.version} has sum {told['Sum']}, not {module.sum}")
    return Path(told["Dir"])


def _fetch(module: Module, target: Path, say: binaries.Say) -> None:
    say(f"downloading {module.path}@{module.version}")
    folder = source(module, say) / module.folder
    begun = target.with_suffix(".part")
    shutil.rmtree(begun, ignore_errors=True)
    begun.mkdir(parents=True)
    for path in sorted(folder.glob("*.yaml")):
        text = path.read_text(encoding="utf-8")
        # One with a template's fields is made whole by its project's installer alone.
        if "\nkind: CustomResourceDefinition" in text and "{{" not in text:
            (begun / path.name).write_text(text, encoding="utf-8")
    begun.replace(target)
