"""How objects are submitted: unchanged with a queue label, or wrapped in a Workload.

A native object of a kind that the hub serves is created there, and its queue label makes it a
workload. A kind whose definition the hub lacks cannot be stored there; such an object is wrapped in
a Workload with the name that the hub would have given. An object that runs nothing by itself, such
as a ConfigMap, is applied first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fairway.api.errors import AlreadyExists, ApiError, NotFound
from fairway.api.kindrule import KindRule
from fairway.api.meta import API_VERSION
from fairway.api.names import FINALIZER
from fairway.cli.session import Failure, Session
from fairway.client.asynchronous import WORKLOADS
from fairway.client.errors import UnknownKind
from fairway.client.wire import Object
from fairway.kinds.native import DEFAULT_QUEUE, POLICY, PRIORITY, QUEUE, as_workload
from fairway.kinds.registry import Kinds, built_in


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What the command line says about all that is submitted."""

    queue: str = ""
    priority: int | None = None
    policy: str = ""
    is_dry: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Submitted:
    """One created object, and the name of its workload; empty: it runs nothing itself."""

    label: str
    verb: str
    object: Object
    workload: str = ""
    queue: str = ""
    namespace: str = ""


def known_kinds(session: Session) -> Kinds:
    """The built-in kinds, and those of the hub's rules."""
    from fairway.kinds.rules.load import kinds_of  # noqa: PLC0415 - only here

    kinds = built_in()
    try:
        rules = session.client.kind(KindRule).list()
    except (ApiError, UnknownKind):
        return kinds
    return kinds.plus(kinds_of(rules).kinds) if rules else kinds


def submit(session: Session, objects: Sequence[Object], wish: Wish) -> list[Submitted]:
    """Submits objects; first those that run nothing, because the others may need them."""
    kinds = known_kinds(session)
    runs = [object_ for object_ in objects if is_workload(object_) or kinds.of(object_) is not None]
    if not runs:
        named = ", ".join(sorted({str(object_.get("kind")) for object_ in objects}))
        raise Failure(
            f"nothing here runs: {named} is no Workload and of no known kind "
            "(`fairway apply` makes objects of any kind)"
        )
    others = [object_ for object_ in objects if not any(object_ is each for each in runs)]
    made = [_apply(session, entry, wish) for entry in others]
    return made + [_submit(session, entry, wish, kinds) for entry in runs]


def is_workload(obj: Object) -> bool:
    return obj.get("apiVersion") == API_VERSION and obj.get("kind") == "Workload"


def _submit(session: Session, obj: Object, wish: Wish, kinds: Kinds) -> Submitted:
    obj = _at_home(session, obj)
    if is_workload(obj):
        return _create_workload(session, workload_of(obj, wish), wish)
    queue = wish.queue or _queue_of(obj) or _default_queue(session, obj)
    if not queue:
        raise Failure("say which queue, with --queue QUEUE; neither namespace nor fleet has one")
    marked = with_queue(obj, queue, wish)
    try:
        served = session.client.kind_of(marked)
    except UnknownKind:
        return _create_workload(session, wrap(marked, kinds), wish)
    _check(marked, kinds)
    made = _create(session, marked, wish)
    return Submitted(
        label=f"{served.qualified_singular}/{made['metadata']['name']}",
        verb="submitted",
        object=made,
        workload=f"{obj['kind'].lower()}-{made['metadata']['name']}",
        queue=queue,
        namespace=made["metadata"]["namespace"],
    )


def workload_of(obj: Object, wish: Wish) -> Object:
    """A Workload with the settings of the command line, and the finalizer that all of ours have."""
    metadata, spec = {**(obj.get("metadata") or {})}, {**(obj.get("spec") or {})}
    finalizers = list(metadata.get("finalizers") or ())
    metadata["finalizers"] = [*finalizers, *([FINALIZER] if FINALIZER not in finalizers else ())]
    said: dict[str, Any] = {"queue": wish.queue, "policy": wish.policy}
    spec |= {key: value for key, value in said.items() if value}
    if wish.priority is not None:
        spec["priority"] = wish.priority
    return {**obj, "metadata": metadata, "spec": spec}


def with_queue(obj: Object, queue: str, wish: Wish) -> Object:
    """A native object with its queue, and the other settings of the command line."""
    metadata = {**obj["metadata"]}
    labels = {**(metadata.get("labels") or {}), QUEUE[0]: queue}
    if wish.priority is not None:
        labels[PRIORITY[0]] = str(wish.priority)
    if wish.policy:
        labels[POLICY[0]] = wish.policy
    return {**obj, "metadata": {**metadata, "labels": labels}}


def wrap(obj: Object, kinds: Kinds) -> Object:
    """A Workload with the object as its template, named as the hub would name it."""
    if not (obj.get("metadata") or {}).get("name"):
        raise Failure(f"a {obj['kind']} has no metadata.name")
    result = as_workload(obj, kinds)
    if result is None:
        raise Failure(f"{obj['kind']} {obj['metadata']['name']} belongs to another object")
    name = f"{obj['kind'].lower()}-{obj['metadata']['name']}"
    spec = {key: value for key, value in result["spec"].items() if key != "source"}
    return {**result, "metadata": {**result["metadata"], "name": name}, "spec": spec}


def _check(obj: Object, kinds: Kinds) -> None:
    """Reports faults here that the hub would only report in an event."""
    kind = kinds.of(obj)
    faults = kind.faults(obj) if kind is not None else []
    if faults:
        name = obj["metadata"].get("name", "")
        raise Failure(f"{obj['kind']} {name} cannot be run: {'; '.join(faults)}")


def _create_workload(session: Session, obj: Object, wish: Wish) -> Submitted:
    made = _create(session, obj, wish)
    name = made["metadata"]["name"]
    return Submitted(
        label=f"workload.fairway.dev/{name}",
        verb="submitted",
        object=made,
        workload=name,
        queue=str(made["spec"].get("queue") or ""),
        namespace=made["metadata"]["namespace"],
    )


def _create(session: Session, obj: Object, wish: Wish) -> Object:
    try:
        return session.client.create(obj, dry_run=wish.is_dry)
    except AlreadyExists as error:
        name = f"{obj['kind'].lower()}/{obj['metadata'].get('name', '')}"
        raise Failure(
            f"{error.message}: delete it first (`fairway delete {name}`), or change it with "
            "`fairway apply`"
        ) from error


def _apply(session: Session, obj: Object, wish: Wish) -> Submitted:
    served = session.client.kind_of(obj)
    obj = _at_home(session, obj) if served.namespaced else obj
    made = session.client.apply(obj, dry_run=wish.is_dry)
    label = f"{served.qualified_singular}/{made['metadata']['name']}"
    return Submitted(label=label, verb="applied", object=made)


def _at_home(session: Session, obj: Object) -> Object:
    metadata = obj.get("metadata") or {}
    own = str(metadata.get("namespace") or "")
    if own and session.namespace_given not in ("", own):
        raise Failure(
            f'the namespace from the provided object "{own}" does not match the namespace '
            f'"{session.namespace_given}"; pass --namespace={own} or leave it out'
        )
    return {**obj, "metadata": {**metadata, "namespace": own or session.namespace}}


def _queue_of(obj: Object) -> str:
    for field in ("labels", "annotations"):
        result = obj["metadata"].get(field) or {}
        for key in QUEUE:
            if result.get(key):
                return str(result[key])
    return ""


def _default_queue(session: Session, obj: Object) -> str:
    """The default queue of the namespace, else of the fleet."""
    try:
        home = session.client.get("namespaces", obj["metadata"]["namespace"])
        queue = (home["metadata"].get("labels") or {}).get(DEFAULT_QUEUE)
        if queue:
            return str(queue)
    except ApiError:
        pass
    try:
        fleet = session.client.get("fleets.fairway.dev", "fleet")
    except (NotFound, ApiError):
        return ""
    return str(((fleet.get("spec") or {}).get("defaults") or {}).get("queue") or "")


def await_workload(session: Session, made: Submitted, seconds: float | None) -> Object:
    """The workload of a submitted object; that of a native object is created a moment later."""
    from fairway.cli.conditions import Exists, wait_for  # noqa: PLC0415 - as above
    from fairway.cli.targets import Target  # noqa: PLC0415 - only where it is waited for

    served = session.client.resolve(WORKLOADS)
    target = Target(served=served, name=made.workload, namespace=made.namespace)
    wait_for(session, target, Exists(), seconds)
    return session.client.get(served, made.workload, namespace=made.namespace)
