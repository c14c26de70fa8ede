"""Native objects with a queue label, read as workloads.

A Job, Deployment, or any other object of a known kind that names its queue needs no Workload: it is
one. It uses labels or annotations for what a Workload says in its spec; Kueue's are understood as
well. Objects that a controller made are left alone: their owner counts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fairway.api.errors import FieldError, Invalid, invalid, not_supported
from fairway.api.meta import API_VERSION, JsonObject
from fairway.api.names import FINALIZER, FINISHED
from fairway.api.podset import PodSet
from fairway.api.submission import CREATED_BY, SUBMITTED_BY
from fairway.api.workload import Workload
from fairway.kinds.decision import WORK
from fairway.kinds.interface import Kind
from fairway.kinds.job import FLEET_CONTROLLERS, Job
from fairway.kinds.plain import child, maps_at, number, text, texts, with_value, without
from fairway.kinds.pod import GATE
from fairway.kinds.registry import KnownKinds, built_in
from fairway.kinds.suspension import without_suspension

# Ours first; the others are Kueue's.
QUEUE = ("fairway.dev/queue", "kueue.x-k8s.io/queue-name")
POLICY = ("fairway.dev/policy",)
MAX_UNAVAILABLE = ("fairway.dev/max-unavailable",)
PRIORITY = ("fairway.dev/priority",)
PRIORITY_CLASS = ("fairway.dev/priority-class", "kueue.x-k8s.io/priority-class")
MODE = ("fairway.dev/mode",)
RUN_SECONDS = ("fairway.dev/run-seconds",)
RUN_SECONDS_LIMIT = ("fairway.dev/run-seconds-limit", "kueue.x-k8s.io/max-exec-time-seconds")
CONCURRENCY = ("fairway.dev/concurrency",)
DEFAULT_QUEUE = "fairway.dev/default-queue"  # a label of namespaces

_SERVER_SET = (
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "managedFields",
    "ownerReferences",
    "finalizers",
    "selfLink",
)
# Annotations in which tools and controllers record their own state about this object.
_REMEMBERED = (
    "kubectl.kubernetes.io/last-applied-configuration",
    "deployment.kubernetes.io/revision",
    "batch.kubernetes.io/job-tracking",
    FINISHED,
)
# Annotations that the store writes; they say nothing of the workload that the hub creates.
_NOTES = (CREATED_BY, SUBMITTED_BY)
_LABELLED = ("labels", "matchLabels")  # label maps, wherever a kind has them
_JOB_LABELS = (
    "controller-uid",
    "batch.kubernetes.io/controller-uid",
    "job-name",
    "batch.kubernetes.io/job-name",
)


def as_workload(manifest: JsonObject, kinds: KnownKinds) -> JsonObject | None:
    """The Workload of a native object; None if it has no queue or its kind is not known.

    Raises Invalid if its labels or annotations can't be parsed.
    """
    kind, queue = kinds.of(manifest), queue_said(manifest)[1]
    if kind is None or not queue or is_owned(manifest) or is_of_a_work(manifest):
        return None
    reader = _Reader(manifest, kind)
    spec = reader.spec(queue)
    if reader.faults:
        group = str(manifest.get("apiVersion", "")).rpartition("/")[0]
        raise Invalid.of(kind.name, group, text(manifest, "metadata", "name"), reader.faults)
    metadata = child(manifest, "metadata")
    return {
        "apiVersion": API_VERSION,
        "kind": "Workload",
        "metadata": {
            "name": text(metadata, "name"),
            "namespace": text(metadata, "namespace", default="default"),
            "labels": texts(metadata, "labels"),
            "annotations": _without_keys(texts(metadata, "annotations"), (*_REMEMBERED, *_NOTES)),
            "finalizers": [FINALIZER],
            **{key: metadata[key] for key in ("creationTimestamp",) if key in metadata},
        },
        "spec": spec,
    }


def queue_said(manifest: JsonObject) -> tuple[str, str]:
    """The field that names a native object's queue, and the queue; empty if it names none."""
    return _say(manifest, QUEUE)


def without_kueue(metadata: JsonObject) -> JsonObject:
    """Metadata that names no queue of Kueue's."""
    made = dict(metadata)
    for field in ("labels", "annotations"):
        if field in made:
            made[field] = _without_keys(made[field] or {}, QUEUE[1:])
    return made


def derived_pod_sets(workload: Workload, kinds: KnownKinds | None = None) -> tuple[PodSet, ...]:
    """The pod sets of a workload's first manifest; none if its kind is not known."""
    if workload.spec.template is None:
        return ()
    known = built_in() if kinds is None else kinds
    return known.pod_sets(workload.spec.template.manifests[0], workload.spec.mode)


def is_owned(manifest: JsonObject) -> bool:
    """Whether a controller made it."""
    owners = maps_at(manifest, "metadata", "ownerReferences")
    return any(owner.get("controller") is True for owner in owners)


def is_of_a_work(manifest: JsonObject) -> bool:
    """Whether an agent made it; a hub may be one of its own member clusters."""
    return WORK in child(manifest, "metadata", "labels")


def clean_manifest(manifest: JsonObject) -> JsonObject:
    """A manifest to be created elsewhere, without what its own server and controllers added.

    The queue is removed as well, from the object and its templates, so that Kueue in the cluster
    does not queue it again.
    """
    plain = without(manifest, "status")
    if "spec" in plain:
        plain = {**plain, "spec": _unqueued(plain["spec"])}
    metadata = _without_keys(child(plain, "metadata"), _SERVER_SET)
    for field, names in (("labels", QUEUE), ("annotations", (*_REMEMBERED, SUBMITTED_BY))):
        if field in metadata:
            metadata[field] = _without_keys(child(metadata, field), names)
            if not metadata[field]:
                del metadata[field]
    plain = {**plain, "metadata": metadata}
    clean = _CLEANERS.get((str(plain.get("apiVersion")), str(plain.get("kind"))))
    if clean is not None:
        plain = clean(plain)
    if child(plain, "spec").get("managedBy") in FLEET_CONTROLLERS:
        plain = without(plain, "spec", "managedBy")
    return plain


def _unqueued(value: Any) -> Any:
    """The value without queue labels in templates and their selectors, at any depth.

    Unchanged parts are shared with the input.
    """
    if isinstance(value, list):
        several = [_unqueued(item) for item in value]
        is_same = all(other is before for other, before in zip(several, value, strict=True))
        return value if is_same else several
    if not isinstance(value, dict):
        return value
    made = {key: _unqueued(other) for key, other in value.items()}
    for field in _LABELLED:
        labels = made.get(field)
        if isinstance(labels, dict) and any(name in labels for name in QUEUE):
            made[field] = _without_keys(labels, QUEUE)
    return value if all(other is value[key] for key, other in made.items()) else made


def _clean_job(job: JsonObject) -> JsonObject:
    """Removes the selector and labels that bind its pods to this object."""
    if child(job, "spec").get("manualSelector") is True:
        return job
    job = without(job, "spec", "selector")
    for path in (("metadata",), ("spec", "template", "metadata")):
        labels = child(job, *path, "labels")
        if labels:
            job = with_value(job, (*path, "labels"), _without_keys(labels, _JOB_LABELS))
    return without(job, "spec", "template", "metadata", "creationTimestamp")


def _clean_pod(pod: JsonObject) -> JsonObject:
    """Removes its node, its priority, our gate, and the volume for its service account token."""
    pod = without(without(pod, "spec", "nodeName"), "spec", "priority")
    spec = dict(child(pod, "spec"))
    tokens = {
        volume.get("name")
        for volume in maps_at(spec, "volumes")
        if text(volume, "name").startswith("kube-api-access-")
    }
    if tokens:
        spec["volumes"] = [
            volume for volume in maps_at(spec, "volumes") if volume.get("name") not in tokens
        ]
        for field in ("containers", "initContainers"):
            if field in spec:
                spec[field] = [_unmounted(entry, tokens) for entry in maps_at(spec, field)]
    gates = [gate for gate in maps_at(spec, "schedulingGates") if gate.get("name") != GATE]
    spec.pop("schedulingGates", None)
    return {**pod, "spec": {**spec, "schedulingGates": gates} if gates else spec}


def _unmounted(container: JsonObject, volumes: set[Any]) -> JsonObject:
    mounts = [
        mount for mount in maps_at(container, "volumeMounts") if mount.get("name") not in volumes
    ]
    return {**container, "volumeMounts": mounts}


def _clean_deployment(deployment: JsonObject) -> JsonObject:
    """Removes the pause that holds it back on the hub."""
    return without(deployment, "spec", "paused")


_CLEANERS: Mapping[tuple[str, str], Callable[[JsonObject], JsonObject]] = {
    ("apps/v1", "Deployment"): _clean_deployment,
    ("batch/v1", "Job"): _clean_job,
    ("v1", "Pod"): _clean_pod,
}


def _without_keys(values: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if key not in names}


def _say(manifest: JsonObject, keys: tuple[str, ...]) -> tuple[str, str]:
    """The path and value of the first of these keys found as label or annotation."""
    for key in keys:
        for field in ("labels", "annotations"):
            result = child(manifest, "metadata", field)
            if key in result:
                return f"metadata.{field}[{key}]", str(result[key])
    return "", ""


class _Reader:
    """Reads the settings of a native object, and collects what can't be parsed."""

    def __init__(self, manifest: JsonObject, kind: Kind) -> None:
        self.manifest = manifest
        self.kind = kind
        self.faults: list[FieldError] = []

    def spec(self, queue: str) -> JsonObject:
        manifest, kind = self.manifest, self.kind
        mode = self._mode()
        spec: JsonObject = {
            "queue": queue,
            "mode": mode,
            "source": self._source(),
            "template": {"manifests": [without_suspension(clean_manifest(manifest), kind)]},
            **self._priority(),
        }
        policy = _say(manifest, POLICY)[1]
        if policy:
            spec["policy"] = policy
        if mode == "Divided":
            replicas = kind.replicas(manifest)
            spec["replicas"] = 1 if replicas is None else replicas  # of a Job: in each cluster
            spec |= self._disruption()
        if mode == "Independent":
            spec["tasks"] = self._tasks()
        seconds = self._run_seconds()
        if seconds:
            spec["runSeconds"] = seconds
        return spec

    def _disruption(self) -> JsonObject:
        """How many replicas moves may take away at a time, if set."""
        path, said = _say(self.manifest, MAX_UNAVAILABLE)
        if not said:
            return {}
        if not said.isdecimal() or len(said) > 9:
            self.faults.append(invalid(path, said, "expected a whole number"))
            return {}
        return {"disruption": {"maxUnavailable": int(said)}}

    def _mode(self) -> str:
        own = self.kind.mode(self.manifest)
        path, said = _say(self.manifest, MODE)
        allowed = [own, "Divided"] if isinstance(self.kind, Job) else [own]
        if isinstance(self.kind, Job) and number(self.manifest, "spec", "completions"):
            allowed.append("Independent")
        if own == "Divided":
            allowed.append("Gang")
        if said and said not in allowed:
            self.faults.append(not_supported(path, said, allowed))
        return said or own

    def _source(self) -> JsonObject:
        metadata = child(self.manifest, "metadata")
        return {
            "apiVersion": str(self.manifest.get("apiVersion")),
            "kind": str(self.manifest.get("kind")),
            "name": text(metadata, "name"),
            **{key: metadata[key] for key in ("namespace", "uid") if metadata.get(key)},
        }

    def _priority(self) -> JsonObject:
        """A number takes precedence over a class; of the pods' classes the first counts."""
        path, said = _say(self.manifest, PRIORITY)
        if said:
            digits = said.removeprefix("-")
            if digits.isdecimal() and len(digits) <= 10:
                return {"priority": int(said)}
            self.faults.append(invalid(path, said, "a priority is a whole number"))
        named = _say(self.manifest, PRIORITY_CLASS)[1]
        named = named or text(self.manifest, "spec", "priorityClassName")
        for template in self.kind.templates(self.manifest).values():
            named = named or text(template, "spec", "priorityClassName")
        return {"priorityClass": named} if named else {}

    def _tasks(self) -> JsonObject:
        concurrency = self._seconds_or_count(CONCURRENCY)
        return {
            "count": number(self.manifest, "spec", "completions", default=1),
            # Its parallelism is the concurrency that its author considered acceptable.
            "concurrency": concurrency or number(self.manifest, "spec", "parallelism", default=1),
            "retries": number(self.manifest, "spec", "backoffLimitPerIndex"),
        }

    def _run_seconds(self) -> JsonObject:
        estimate = self._seconds_or_count(RUN_SECONDS)
        limit = self._seconds_or_count(RUN_SECONDS_LIMIT)
        deadline = number(self.manifest, "spec", "activeDeadlineSeconds")
        limits = [other for other in (limit, deadline) if other]
        run_seconds: JsonObject = {}
        if limits:
            run_seconds["limit"] = min(limits)
        if estimate:
            run_seconds["estimate"] = min([estimate, *limits])
        return run_seconds

    def _seconds_or_count(self, keys: tuple[str, ...]) -> int:
        path, said = _say(self.manifest, keys)
        if said.isdecimal() and 0 < int(said) <= 315_360_000:
            return int(said)
        if said:
            self.faults.append(invalid(path, said, "expected a whole number above zero"))
        return 0
