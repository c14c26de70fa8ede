"""The plugins of Volcano's Job, as far as they give pods each other's addresses.

    env       the number of a pod within its task
    svc       host names, and the hosts of every task
    pytorch   the master's address, the world size, and the rank of the pod
    mpi       the workers' hosts, for the master
    tensorflow   the hosts of every role, as TF_CONFIG

Arguments are flags of the plugin, such as `--master=launcher`. Keys for `ssh` are secrets that the
plugin creates in the cluster; without its controller there are none.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from fairway.api.meta import JsonObject
from fairway.kinds.plain import child, maps_at, name_of, number, text

_PYTORCH_PORT = 23456
_TENSORFLOW_PORT = 2222
_COMPLETES = ("CompleteJob",)


def task_name(task: JsonObject, index: int) -> str:
    """The name of a task; a task without a name is named by its position."""
    return text(task, "name") or f"default{index}"


def pod_name(job: JsonObject, task: str, index: int) -> str:
    return f"{name_of(job)}-{task}-{index}"


def apply(job: JsonObject, spec: JsonObject, *, task: str, index: int) -> None:
    """Applies the job's plugins to a pod's spec, in place."""
    plugins = child(job, "spec", "plugins")
    # The framework plugins also set host names.
    if any(item in plugins for item in ("svc", "pytorch", "mpi", "tensorflow")):
        spec.setdefault("hostname", pod_name(job, task, index))
        spec.setdefault("subdomain", name_of(job))
    variables: dict[str, str] = {}
    for name, give in _VARIABLES.items():
        if name in plugins:
            variables.update(give(job, _flags(plugins[name]), task, index))
    for container in (*maps_at(spec, "containers"), *maps_at(spec, "initContainers")):
        own = maps_at(container, "env")
        names = {entry.get("name") for entry in own}
        added = [{"name": key, "value": value} for key, value in variables.items()]
        container["env"] = [*own, *(entry for entry in added if entry["name"] not in names)]


def completing_task(job: JsonObject) -> str:
    """The task whose completion ends the whole job, by its policies; empty if there is none."""
    for index, task in enumerate(maps_at(job, "spec", "tasks")):
        for policy in maps_at(task, "policies"):
            events = [policy.get("event"), *(policy.get("events") or ())]
            if "TaskCompleted" in events and policy.get("action") in _COMPLETES:
                return task_name(task, index)
    return ""


def _flags(arguments: object) -> dict[str, str]:
    """Parses arguments such as `--master=launcher` into a map."""
    flags = {}
    for argument in arguments if isinstance(arguments, list) else ():
        name, _, value = str(argument).lstrip("-").partition("=")
        flags[name] = value
    return flags


def hosts(job: JsonObject, task: str) -> list[str]:
    """The host names of a task's pods."""
    for position, value in enumerate(maps_at(job, "spec", "tasks")):
        if task_name(value, position) != task:
            continue
        own = text(value, "template", "spec", "hostname")
        domain = text(value, "template", "spec", "subdomain") or name_of(job)
        if own:
            return [f"{own}.{domain}"]
        count = number(value, "replicas", default=1)
        return [f"{pod_name(job, task, index)}.{domain}" for index in range(count)]
    return []


def _tasks(job: JsonObject) -> list[str]:
    return [task_name(task, index) for index, task in enumerate(maps_at(job, "spec", "tasks"))]


def _env(job: JsonObject, flags: Mapping[str, str], task: str, index: int) -> dict[str, str]:
    return {"VK_TASK_INDEX": str(index), "VC_TASK_INDEX": str(index)}


def _svc(job: JsonObject, flags: Mapping[str, str], task: str, index: int) -> dict[str, str]:
    variables = {}
    for name in _tasks(job):
        key = name.replace("-", "_").upper()
        variables[f"VC_{key}_HOSTS"] = ",".join(hosts(job, name))
        variables[f"VC_{key}_NUM"] = str(len(hosts(job, name)))
    return variables


def _pytorch(job: JsonObject, flags: Mapping[str, str], task: str, index: int) -> dict[str, str]:
    master, worker = flags.get("master", "master"), flags.get("worker", "worker")
    if master not in _tasks(job):
        return {}
    masters = hosts(job, master)
    variables = {
        "MASTER_ADDR": masters[0] if masters else "",
        "MASTER_PORT": flags.get("port", str(_PYTORCH_PORT)),
        "WORLD_SIZE": str(len(masters) + len(hosts(job, worker))),
    }
    if task == worker:
        variables["RANK"] = str(index + 1)
    elif task == master:
        variables["RANK"] = "0"
    return variables


def _mpi(job: JsonObject, flags: Mapping[str, str], task: str, index: int) -> dict[str, str]:
    if task != flags.get("master", "master"):
        return {}
    return {"MPI_HOST": ",".join(hosts(job, flags.get("worker", "worker")))}


def _tensorflow(job: JsonObject, flags: Mapping[str, str], task: str, index: int) -> dict[str, str]:
    port = flags.get("port", str(_TENSORFLOW_PORT))
    names = {role: flags.get(role, role) for role in ("ps", "worker", "chief", "evaluator")}
    roles = {role: name for role, name in names.items() if name in _tasks(job)}
    own = next((role for role, name in roles.items() if name == task), "")
    if not own:
        return {}
    cluster = {
        role: [f"{host}:{port}" for host in hosts(job, name)] for role, name in roles.items()
    }
    config = {"cluster": cluster, "task": {"type": own, "index": index}}
    return {"TF_CONFIG": json.dumps(config, separators=(",", ":"))}


_VARIABLES = {
    "env": _env,
    "svc": _svc,
    "pytorch": _pytorch,
    "mpi": _mpi,
    "tensorflow": _tensorflow,
}
