"""`fairway export`: objects as YAML that can be applied again, here or on another server.

Fields set by the server (identifiers, versions, times, status) are left out. So are objects that
another object creates again, and objects that every server creates at startup. Without its status a
finished workload would run again where it is applied, so it is left out; a native object that has
ended says so in an annotation, which goes along.
"""

from __future__ import annotations

import click

from fairway.api.codec import to_yaml
from fairway.api.errors import Forbidden, MethodNotAllowed, NotFound
from fairway.api.meta import GROUP
from fairway.api.names import OVER
from fairway.api.submission import SUBMITTED_BY
from fairway.cli import options, render_objects
from fairway.cli.commands import Command
from fairway.cli.completion import complete_kinds
from fairway.cli.session import Session, current, say
from fairway.cli.targets import expand
from fairway.client.catalogue import Served
from fairway.client.wire import Object, Scope

EXAMPLES = """
    fairway export > fleet.yaml             everything
    fairway export queues,flavors           two kinds
    fairway export -n team-a > team-a.yaml  one namespace
"""
# Transient objects of the controllers, or objects that the server creates at startup.
PASSING = {
    "events",
    "leases.coordination.k8s.io",
    "endpoints",
    "endpointslices.discovery.k8s.io",
    "apiservices.apiregistration.k8s.io",
    "flowschemas.flowcontrol.apiserver.k8s.io",
    "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io",
    "ipaddresses.networking.k8s.io",
    "servicecidrs.networking.k8s.io",
    "componentstatuses",
    "clusterreports.fairway.dev",
}
SERVER_MADE = {
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
    "managedFields",
    "ownerReferences",
}
STAMPS = {
    "kubectl.kubernetes.io/last-applied-configuration",
    "fairway.dev/created-by",
    SUBMITTED_BY,
}
NAME_LABEL = "kubernetes.io/metadata.name"


@click.command(cls=Command, examples=EXAMPLES)
@click.argument("words", nargs=-1, metavar="[KIND]...", shell_complete=complete_kinds)
@options.selector
@options.all_namespaces
@click.option(
    "-o", "--output", type=click.Choice(["yaml", "json"]), default="yaml", help="yaml or json."
)
def export(*, words: tuple[str, ...], selector: str, all_namespaces: bool, output: str) -> int:
    """Print objects as YAML that can be applied again.

    Without kinds: all of them. Without -n: of every namespace. Secrets are included, readable.
    Workloads that have finished or were cancelled are left out, so that nothing runs again.
    """
    session = current()
    kinds = [item for word in words for part in word.split(",") for item in expand(session, part)]
    namespace = None if all_namespaces else session.namespace_given or None
    result: list[Object] = []
    for served in kinds or _everything(session):
        if namespace and not served.namespaced and not words:
            continue
        result += _objects(session, served, Scope(namespace=namespace, labels=selector))
    secrets = sum(obj["kind"] == "Secret" for obj in result)
    if secrets:
        say(f"warning: {secrets} of these {len(result)} objects are Secrets; keep the output safe")
    if output == "json":
        click.echo(render_objects.to_json(render_objects.as_list(result)))
        return 0
    click.echo("---\n".join(to_yaml(obj) for obj in result), nl=False)
    return 0


def clean(obj: Object) -> Object:
    """The object as a person would have written it."""
    kept = {key: value for key, value in obj["metadata"].items() if key not in SERVER_MADE}
    for field in ("annotations", "labels"):
        marks: dict[str, str] = kept.pop(field, None) or {}
        marks = {key: marks[key] for key in marks if key not in {*STAMPS, NAME_LABEL}}
        if marks:
            kept[field] = marks
    order = ("name", "namespace", "labels", "annotations", "finalizers")
    metadata = {key: kept[key] for key in order if key in kept}
    metadata |= {key: value for key, value in kept.items() if key not in metadata}
    rest = {key: value for key, value in obj.items() if key not in {"metadata", "status"}}
    return render_objects.in_order(_unbound({**rest, "metadata": metadata}))


def _unbound(obj: Object) -> Object:
    """Removes what binds an object to this server, and would be refused by another."""
    spec = dict(obj.get("spec") or {})
    match obj["kind"]:
        case "Namespace":
            spec = {}
        case "Service" if spec.get("clusterIP") != "None":
            spec = {key: spec[key] for key in spec if key not in {"clusterIP", "clusterIPs"}}
        case "Job" if obj["apiVersion"] == "batch/v1" and not spec.get("manualSelector"):
            spec.pop("selector", None)
            spec["template"] = _without_tracking(spec.get("template") or {})
        case "PersistentVolumeClaim":
            spec.pop("volumeName", None)
        case "Pod":
            spec.pop("nodeName", None)
        case _:
            return obj
    rest = {key: value for key, value in obj.items() if key != "spec"}
    return {**rest, "spec": spec} if spec else rest


def _without_tracking(template: Object) -> Object:
    """Removes the labels that the server puts into a job's template to select its pods."""
    metadata = dict(template.get("metadata") or {})
    labels: dict[str, str] = metadata.pop("labels", None) or {}
    kept = {
        key: value
        for key, value in labels.items()
        if key.rpartition("/")[2] not in {"controller-uid", "job-name"}
    }
    metadata.pop("creationTimestamp", None)
    if kept:
        metadata["labels"] = kept
    return {**template, "metadata": metadata}


def is_ours(obj: Object) -> bool:
    """Whether a person made it, not a controller, nor the server at startup."""
    metadata = obj["metadata"]
    owners = metadata.get("ownerReferences") or ()
    labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
    name, namespace = metadata["name"], metadata.get("namespace", "")
    return not (
        metadata.get("deletionTimestamp")
        or any(owner.get("controller") for owner in owners)
        or "kubernetes.io/bootstrapping" in labels
        or annotations.get("fairway.dev/created-by") == "system:fairway"
        or namespace.startswith("kube-")
        or (obj["kind"] == "Namespace" and (name == "default" or name.startswith("kube-")))
        or (obj["kind"] == "PriorityClass" and name.startswith("system-"))
        or (obj["kind"] == "ServiceAccount" and name == "default")
        or (obj["kind"] == "ConfigMap" and name == "kube-root-ca.crt")
        or (obj["kind"] == "Service" and (namespace, name) == ("default", "kubernetes"))
    )


def has_finished(obj: Object) -> bool:
    """Whether it is a workload that is over, or is only being stopped."""
    if obj["kind"] != "Workload" or obj["apiVersion"].partition("/")[0] != GROUP:
        return False
    status = obj.get("status") or {}
    return status.get("phase") in OVER or bool(status.get("finishedAt"))


def _everything(session: Session) -> list[Served]:
    needed = {"list", "create", "get"}
    resources = [
        resource
        for resource in session.client.catalogue().preferred()
        if needed <= set(resource.verbs) and resource.qualified not in PASSING
    ]
    first = {"namespaces": 0, "customresourcedefinitions": 1}
    return sorted(
        resources, key=lambda resource: (first.get(resource.plural, 2), resource.namespaced)
    )


def _objects(session: Session, served: Served, scope: Scope) -> list[Object]:
    try:
        items = session.client.list(served, scope=scope).items
    except (Forbidden, MethodNotAllowed, NotFound) as error:
        say(f"warning: {served.qualified} left out: {error.message}")
        return []
    ours = [obj for obj in items if is_ours(obj)]
    kept = [obj for obj in ours if not has_finished(obj)]
    if len(kept) < len(ours):
        say(f"note: {len(ours) - len(kept)} finished workloads left out, which would run again")
    return [clean(obj) for obj in kept]
