"""The Workload that `fairway run` makes: a Job, and what several workers need to find each other.

Workers are the indexes of one Job; a headless Service gives each a host name. So only Kubernetes'
own kinds are needed, and the variables that PyTorch, JAX and their launchers read are set
explicitly.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

from fairway.api.meta import API_VERSION
from fairway.api.names import FINALIZER
from fairway.client.wire import Object
from fairway.kinds.job import INDEX

GPU = "nvidia.com/gpu"
PORT = 29500  # the default of torch.distributed
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_NAME_MOST = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """The program to run, and its resources."""

    name: str
    namespace: str
    command: Sequence[str]
    image: str
    queue: str = ""
    gpus: str = ""
    cpus: str = ""
    memory: str = ""
    workers: int = 1
    environment: Mapping[str, str] = field(default_factory=dict)
    folder: str = ""
    priority: int | None = None
    policy: str = ""
    flavors: Sequence[str] = ()
    run_seconds_limit: int | None = None


def made_name(command: Sequence[str]) -> str:
    """A name after the program, with a unique suffix."""
    stem = PurePath(command[0]).name.lower()
    plain = "".join(name if name.isascii() and name.isalnum() else "-" for name in stem)
    end = "".join(secrets.choice(_LETTERS) for _ in range(5))
    return f"{plain.strip('-')[:_NAME_MOST].strip('-') or 'run'}-{end}"


def workload(program: Program) -> Object:
    """The Workload of a program."""
    spec: dict[str, Any] = {
        "mode": "Gang",
        "template": {"manifests": _manifests(program)},
    }
    said = {
        "queue": program.queue,
        "policy": program.policy,
        "flavors": list(program.flavors),
    }
    spec |= {key: value for key, value in said.items() if value}
    if program.priority is not None:
        spec["priority"] = program.priority
    if program.run_seconds_limit is not None:
        spec["runSeconds"] = {"limit": program.run_seconds_limit}
    return {
        "apiVersion": API_VERSION,
        "kind": "Workload",
        "metadata": {
            "name": program.name,
            "namespace": program.namespace,
            "finalizers": [FINALIZER],
        },
        "spec": spec,
    }


def _manifests(program: Program) -> list[Object]:
    pod: dict[str, Any] = {"restartPolicy": "Never", "containers": [_container(program)]}
    job: Object = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": program.name},
        "spec": {
            "completions": program.workers,
            "parallelism": program.workers,
            "backoffLimit": 0,
            "template": {"spec": pod},
        },
    }
    if program.workers == 1:
        return [job]
    job["spec"]["completionMode"] = "Indexed"
    pod["subdomain"] = program.name
    return [job, _service(program)]


def _service(program: Program) -> Object:
    """Host names for the workers: NAME-0.NAME and so on."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": program.name},
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": {"batch.kubernetes.io/job-name": program.name},
            "ports": [{"name": "rendezvous", "port": PORT, "targetPort": PORT}],
        },
    }


def _container(program: Program) -> Object:
    amounts = {"cpu": program.cpus, "memory": program.memory, GPU: program.gpus}
    requests = {key: value for key, value in amounts.items() if value}
    container: Object = {
        "name": "main",
        "image": program.image,
        "command": list(program.command),
        "env": [*_meeting(program), *_own(program.environment)],
        "resources": {"requests": requests},
    }
    if program.gpus:
        # Kubernetes requires devices as limits.
        container["resources"]["limits"] = {GPU: program.gpus}
    if program.folder:
        container["workingDir"] = program.folder
    return container


def _own(environment: Mapping[str, str]) -> list[Object]:
    # Escaped, because a dollar sign would begin a reference to another variable.
    return [{"name": key, "value": value.replace("$", "$$")} for key, value in environment.items()]


def _meeting(program: Program) -> list[Object]:
    """Variables by which workers find each other."""
    if program.workers == 1:
        return []
    first, count = f"{program.name}-0.{program.name}", str(program.workers)
    own_index = {"fieldRef": {"fieldPath": f"metadata.annotations['{INDEX}']"}}
    plain = {
        "MASTER_ADDR": first,
        "MASTER_PORT": str(PORT),
        "WORLD_SIZE": count,
        "PET_NNODES": count,
        "PET_MASTER_ADDR": first,
        "PET_MASTER_PORT": str(PORT),
        "COORDINATOR_ADDRESS": f"{first}:{PORT}",
        "NUM_PROCESSES": count,
    }
    indexed = ("RANK", "PET_NODE_RANK", "PROCESS_ID")
    return [
        *({"name": key, "value": value} for key, value in plain.items()),
        *({"name": key, "valueFrom": own_index} for key in indexed),
    ]
