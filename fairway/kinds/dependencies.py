"""Objects of the namespace that pods need; they are copied to the cluster with the workload.

These are ConfigMaps, Secrets, volume claims, service accounts, and resource claims with their
templates, wherever a pod refers to them.
Optional references are included: they are copied if they exist. Volume claims that the pods' own
controller creates from templates are not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fairway.api.meta import JsonObject, ObjectReference
from fairway.kinds.device_claims import API_VERSION, CLAIM, TEMPLATE
from fairway.kinds.plain import child, maps_at, text

# Fields of volume sources that name a Secret, besides the `secret` source.
_SECRET_SOURCES = {
    "azureFile": ("secretName",),
    "cephfs": ("secretRef", "name"),
    "cinder": ("secretRef", "name"),
    "csi": ("nodePublishSecretRef", "name"),
    "flexVolume": ("secretRef", "name"),
    "iscsi": ("secretRef", "name"),
    "rbd": ("secretRef", "name"),
    "scaleIO": ("secretRef", "name"),
    "storageos": ("secretRef", "name"),
}
# Objects that every namespace has by default.
_EVERYWHERE = {
    ObjectReference(kind="ServiceAccount", name="default"),
    ObjectReference(kind="ConfigMap", name="kube-root-ca.crt"),
}


def of_templates(templates: Iterable[JsonObject]) -> tuple[ObjectReference, ...]:
    """Dependencies of the pods of these templates, deduplicated, in a fixed order."""
    references = {
        reference for template in templates for reference in _of_pod(child(template, "spec"))
    }
    return in_order(references)


def in_order(items: Iterable[ObjectReference]) -> tuple[ObjectReference, ...]:
    kept = {reference for reference in items if reference.name} - _EVERYWHERE
    return tuple(sorted(kept, key=lambda reference: (reference.kind, reference.name)))


def claim(name: str) -> ObjectReference:
    return ObjectReference(kind="PersistentVolumeClaim", name=name)


def _of_pod(spec: JsonObject) -> Iterator[ObjectReference]:
    account = text(spec, "serviceAccountName") or text(spec, "serviceAccount")
    yield ObjectReference(kind="ServiceAccount", name=account)
    for secret in maps_at(spec, "imagePullSecrets"):
        yield _secret(text(secret, "name"))
    for field in ("containers", "initContainers", "ephemeralContainers"):
        for container in maps_at(spec, field):
            yield from _of_container(container)
    for volume in maps_at(spec, "volumes"):
        yield from _of_volume(volume)
    for devices in maps_at(spec, "resourceClaims"):
        yield _devices(TEMPLATE, text(devices, "resourceClaimTemplateName"))
        yield _devices(CLAIM, text(devices, "resourceClaimName"))


def _of_container(container: JsonObject) -> Iterator[ObjectReference]:
    for variable in maps_at(container, "env"):
        yield _config_map(text(variable, "valueFrom", "configMapKeyRef", "name"))
        yield _secret(text(variable, "valueFrom", "secretKeyRef", "name"))
    for source in maps_at(container, "envFrom"):
        yield _config_map(text(source, "configMapRef", "name"))
        yield _secret(text(source, "secretRef", "name"))


def _of_volume(volume: JsonObject) -> Iterator[ObjectReference]:
    yield _config_map(text(volume, "configMap", "name"))
    yield _secret(text(volume, "secret", "secretName"))
    yield claim(text(volume, "persistentVolumeClaim", "claimName"))
    for source in maps_at(volume, "projected", "sources"):
        yield _config_map(text(source, "configMap", "name"))
        yield _secret(text(source, "secret", "name"))
    for name, path in _SECRET_SOURCES.items():
        yield _secret(text(volume, name, *path))


def _config_map(name: str) -> ObjectReference:
    return _reference("ConfigMap", name)


def _secret(name: str) -> ObjectReference:
    return _reference("Secret", name)


def _devices(kind: str, name: str) -> ObjectReference:
    return ObjectReference(api_version=API_VERSION, kind=kind, name=name)


def _reference(kind: str, name: str) -> ObjectReference:
    return ObjectReference(kind=kind, name=name)
