"""What one policy allows: namespaces, kinds, images, priorities and run times.

Images are looked for everywhere in a manifest, not only where its kind has pods: in all containers,
in image volumes, and in any other field whose name ends with `image`. What cannot be checked, such
as a patch of pods given as text, counts as an image that no registry has.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from fairway.api.governance import (
    FleetPolicySpec,
    NamespaceSelector,
    PriorityRange,
    RuleName,
    Violation,
)
from fairway.api.meta import JsonObject
from fairway.api.selectors import matches, requirements
from fairway.api.workload import WorkloadSpec
from fairway.kinds.permitted import HARMLESS
from fairway.kinds.plain import maps_at, text

_DOCKER_HUB = "docker.io"
_DOCKER_HUB_TOO = "index.docker.io"
# Maps of names and values that users choose: a key there says nothing of what runs.
_NOT_SEARCHED = ("metadata", "labels", "annotations", "matchLabels", "nodeSelector")
_UNCHECKED = "podSpecPatch"  # of Argo: text that may name any image


@dataclass(frozen=True, kw_only=True)
class Subject:
    """What rules look at, of a workload or of a work."""

    manifests: Sequence[JsonObject] = ()
    more_images: tuple[str, ...] = ()  # of alternatives
    priority: int | None = None  # None: not known
    run_limit: int | None = None  # that it asks for itself

    @cached_property
    def images(self) -> tuple[str, ...]:
        """All images, each once."""
        images = (image for manifest in self.manifests for image in images_of(manifest))
        return tuple(dict.fromkeys((*images, *self.more_images)))


def subject_of(spec: WorkloadSpec, priority: int | None) -> Subject:
    """A workload, with the priority in effect."""
    return Subject(
        manifests=spec.template.manifests if spec.template is not None else (),
        more_images=tuple(
            change.image
            for alternative in spec.alternatives
            for change in alternative.pod_sets
            if change.image
        ),
        priority=priority,
        run_limit=spec.run_seconds.limit,
    )


def selects(selector: NamespaceSelector, namespace: str, labels: Mapping[str, str]) -> bool:
    """Whether a policy applies to the workloads of a namespace."""
    return (
        (not selector.names or namespace in selector.names)
        and namespace not in selector.exclude
        and matches(requirements(selector.labels), labels)
    )


def violations(policy: str, spec: FleetPolicySpec, subject: Subject) -> Iterator[Violation]:
    """What a policy does not allow in a workload, wherever it runs."""
    yield from template_violations(policy, spec.registries, spec.kinds, subject)
    if spec.priority is not None and subject.priority is not None:
        low, high = spec.priority.min, spec.priority.max
        if (low is not None and subject.priority < low) or (
            high is not None and subject.priority > high
        ):
            yield Violation(policy=policy, rule="priority", what=str(subject.priority))
    longest, limit = spec.run_seconds_max, subject.run_limit
    if longest is not None and limit is not None and limit > longest:
        yield Violation(policy=policy, rule="runSeconds", what=str(limit))


def allowed_words(spec: FleetPolicySpec, rule: RuleName) -> str:
    """What a rule allows, in English."""
    match rule:
        case "registries":
            return f"use images of {' or '.join(spec.registries)}"
        case "kinds":
            return f"use {' or '.join(spec.kinds)}"
        case "priority":
            allowed = spec.priority or PriorityRange()
            parts = [("at least", allowed.min), ("at most", allowed.max)]
            return "use a priority of " + " and ".join(
                f"{word} {value}" for word, value in parts if value is not None
            )
        case "runSeconds":
            return f"set a limit of at most {spec.run_seconds_max} seconds, or none"
        case "clusters":
            return "use a cluster that it allows"


def template_violations(
    policy: str, registries: Sequence[str], kinds: Sequence[str], subject: Subject
) -> Iterator[Violation]:
    """Kinds and images of manifests that are not allowed, each once."""
    if kinds:
        for name in dict.fromkeys(map(_kind_name, subject.manifests)):
            if name and name not in kinds:
                yield Violation(policy=policy, rule="kinds", what=name)
    if registries:
        for image in subject.images:
            if not any(is_from(image, registry) for registry in registries):
                yield Violation(policy=policy, rule="registries", what=image)


def _kind_name(manifest: JsonObject) -> str:
    """A kind as group/Kind; empty for objects that run nothing."""
    group, _, _ = text(manifest, "apiVersion").rpartition("/")
    kind = text(manifest, "kind")
    if (group, kind) in HARMLESS:
        return ""
    return f"{group}/{kind}" if group else kind


def images_of(manifest: JsonObject) -> Iterator[str]:
    """All images that a manifest names; none of an object that runs nothing."""
    if not _kind_name(manifest):
        return
    pending: list[object] = [manifest]
    while pending:
        value = pending.pop()
        if isinstance(value, list):
            pending.extend(reversed(value))
        elif isinstance(value, dict):
            yield from _images_in(value)
            inner = [
                other
                for key, other in value.items()
                if key not in _NOT_SEARCHED and key != "volumes"
            ]
            pending.extend(reversed(inner))


def _images_in(map_: JsonObject) -> Iterator[str]:
    for key, value in map_.items():
        if isinstance(value, str) and value and key.lower().endswith("image"):
            yield value
    for volume in maps_at(map_, "volumes"):
        if reference := text(volume, "image", "reference"):
            yield reference
    if text(map_, _UNCHECKED):
        yield _UNCHECKED


def is_from(image: str, registry: str) -> bool:
    """Whether an image is of a registry, or below a path in one."""
    if image == _UNCHECKED:
        return False
    name, prefix = _full_name(image), registry.rstrip("/")
    # Behind a host a colon begins its port, behind a path the tag of an image.
    ends = ("/", ":", "@") if "/" in prefix else ("/",)
    return name == prefix or name.startswith(tuple(prefix + end for end in ends))


def _full_name(image: str) -> str:
    """An image with its registry: `nginx` is `docker.io/library/nginx`."""
    host, slash, path = image.partition("/")
    if not slash:
        return f"{_DOCKER_HUB}/library/{image}"
    if host == _DOCKER_HUB_TOO:
        return f"{_DOCKER_HUB}/{path}"
    is_host = "." in host or ":" in host or host == "localhost"
    return image if is_host else f"{_DOCKER_HUB}/{image}"
