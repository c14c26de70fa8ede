"""Replaces names in manifests by those that a cluster uses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from fairway.api.amounts import DEVICE_CLASS_PREFIX
from fairway.api.cluster import Mirror, Profile
from fairway.api.meta import JsonObject
from fairway.kinds.decision import add_tolerations, set_environment
from fairway.kinds.device_claims import class_resource, is_claim
from fairway.kinds.interface import Kind
from fairway.kinds.plain import child, copy_of, maps_at, text

_CONTAINERS = ("containers", "initContainers", "ephemeralContainers")
_DEFAULT_SCHEDULER = "default-scheduler"


def apply_profile(kind: Kind | None, manifest: JsonObject, profile: Profile) -> JsonObject:
    """A copy of a manifest with the cluster's own names.

    For a kind that is not known or runs nothing, only storage and device classes are renamed.
    """
    if profile == Profile():
        return copy_of(manifest)
    # `with_counts` creates templates that a user may leave out.
    fitted = copy_of(manifest if kind is None else kind.with_counts(manifest, {}))
    for claim in _volume_claims(fitted):
        _rename_value(claim, "storageClassName", profile.storage_classes)
    if kind is None:
        _rename_device_classes(fitted, profile.resources)
        return fitted
    # A kind such as Volcano's Job sets the scheduler of its pods on purpose.
    has_scheduler = bool(text(fitted, "spec", "schedulerName"))
    for template in kind.templates(fitted).values():
        spec = template.get("spec")
        if isinstance(spec, dict):
            _fit_pod(spec, profile, has_scheduler=has_scheduler and template is not fitted)
    return fitted


def _fit_pod(spec: JsonObject, profile: Profile, *, has_scheduler: bool) -> None:
    rename_resources(spec, profile.resources)
    _rename_labels(spec, profile.node_labels)
    variables = {variable.name: variable.value for variable in profile.environment}
    for field in _CONTAINERS:
        for container in maps_at(spec, field):
            if isinstance(container.get("image"), str):
                container["image"] = mirror_image(container["image"], profile.mirrors)
            if field != "ephemeralContainers":
                set_environment(container, variables, overrides=False)
    add_tolerations(spec, profile.tolerations)
    named = text(spec, "schedulerName")
    if profile.scheduler_name and not has_scheduler and named in ("", _DEFAULT_SCHEDULER):
        spec["schedulerName"] = profile.scheduler_name


def mirror_image(image: str, mirrors: tuple[Mirror, ...]) -> str:
    """The name under which the cluster pulls an image; the first matching prefix counts."""
    for mirror in mirrors:
        if image.startswith(mirror.prefix):
            return mirror.replacement + image[len(mirror.prefix) :]
    return image


def rename_resources(spec: JsonObject, names: Mapping[str, str]) -> None:
    """Renames the resources of a pod's spec in place, to what the cluster calls them."""
    places = [child(spec, "resources")]
    places += [child(entry, "resources") for field in _CONTAINERS for entry in maps_at(spec, field)]
    for resources in places:
        for field in ("requests", "limits"):
            if field in resources:
                resources[field] = _rename(child(resources, field), names)
    if "overhead" in spec:
        spec["overhead"] = _rename(child(spec, "overhead"), names)


def _rename_device_classes(manifest: JsonObject, names: Mapping[str, str]) -> None:
    """Renames the classes of a resource claim, or of a template, by their resources."""
    if not is_claim(manifest):
        return
    for request in _maps(child(manifest, "spec")):
        own = names.get(class_resource(text(request, "deviceClassName")), "")
        if own.startswith(DEVICE_CLASS_PREFIX):
            request["deviceClassName"] = own.removeprefix(DEVICE_CLASS_PREFIX)


def _rename_labels(spec: JsonObject, names: Mapping[str, str]) -> None:
    if not names:
        return
    if "nodeSelector" in spec:
        spec["nodeSelector"] = _rename(child(spec, "nodeSelector"), names)
    for term in _node_terms(spec):
        for test in maps_at(term, "matchExpressions"):
            _rename_value(test, "key", names)
    for constraint in maps_at(spec, "topologySpreadConstraints"):
        _rename_value(constraint, "topologyKey", names)
    for field in ("podAffinity", "podAntiAffinity"):
        for term in _pod_terms(child(spec, "affinity", field)):
            _rename_value(term, "topologyKey", names)


def _node_terms(spec: JsonObject) -> Iterator[JsonObject]:
    affinity = child(spec, "affinity", "nodeAffinity")
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    yield from maps_at(affinity, required, "nodeSelectorTerms")
    for entry in maps_at(affinity, "preferredDuringSchedulingIgnoredDuringExecution"):
        yield child(entry, "preference")


def _pod_terms(affinity: JsonObject) -> Iterator[JsonObject]:
    yield from maps_at(affinity, "requiredDuringSchedulingIgnoredDuringExecution")
    for entry in maps_at(affinity, "preferredDuringSchedulingIgnoredDuringExecution"):
        yield child(entry, "podAffinityTerm")


def _volume_claims(manifest: JsonObject) -> Iterator[JsonObject]:
    """The specs of all volume claims in a manifest, wherever a kind has them.

    Claims and claim templates have a storage class, and a size or access modes.
    """
    for map_ in _maps(manifest):
        if "storageClassName" in map_ and ("resources" in map_ or "accessModes" in map_):
            yield map_


def _maps(value: object) -> Iterator[JsonObject]:
    """All maps in a value, including itself."""
    pending: list[object] = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, dict):
            yield item
            pending.extend(item.values())
        elif isinstance(item, list):
            pending.extend(item)


def _rename(amounts: JsonObject, names: Mapping[str, str]) -> JsonObject:
    return {names.get(key, key): value for key, value in amounts.items()}


def _rename_value(holder: JsonObject, key: str, names: Mapping[str, str]) -> None:
    if holder.get(key) in names:
        holder[key] = names[holder[key]]
