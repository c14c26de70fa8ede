"""Faults of roles and role bindings."""

from __future__ import annotations

from collections.abc import Iterator

from fairway.api.errors import FieldError, invalid, not_supported, required_field
from fairway.resources.builtin.defaults import RBAC_GROUP
from fairway.resources.builtin.parts import members, read, text, with_paths
from fairway.schema.node import JsonObject


def role(obj: JsonObject, old: JsonObject | None) -> list[FieldError]:
    faults: list[FieldError] = []
    for path, rule in with_paths(obj, "rules", ""):
        faults.extend(_rule_faults(rule, path.lstrip("."), is_namespaced=True))
    return faults


def cluster_role(obj: JsonObject, old: JsonObject | None) -> list[FieldError]:
    faults: list[FieldError] = []
    for path, rule in with_paths(obj, "rules", ""):
        faults.extend(_rule_faults(rule, path.lstrip("."), is_namespaced=False))
    return faults


def _rule_faults(rule: JsonObject, path: str, *, is_namespaced: bool) -> Iterator[FieldError]:
    groups, kinds = members(rule, "apiGroups"), members(rule, "resources")
    if not members(rule, "verbs"):
        yield required_field(f"{path}.verbs", "verbs must contain at least one value")
    urls = members(rule, "nonResourceURLs")
    if urls:
        if is_namespaced:
            message = "namespaced rules cannot apply to non-resource URLs"
            yield invalid(f"{path}.nonResourceURLs", urls, message)
        if groups or kinds or members(rule, "resourceNames"):
            message = "rules cannot apply to both regular resources and non-resource URLs"
            yield invalid(f"{path}.nonResourceURLs", urls, message)
        return
    if not groups:
        yield required_field(
            f"{path}.apiGroups", "resource rules must supply at least one api group"
        )
    if not kinds:
        yield required_field(
            f"{path}.resources", "resource rules must supply at least one resource"
        )


def role_binding(obj: JsonObject, old: JsonObject | None) -> list[FieldError]:
    return list(_binding_faults(obj, old, ("Role", "ClusterRole")))


def cluster_role_binding(obj: JsonObject, old: JsonObject | None) -> list[FieldError]:
    return list(_binding_faults(obj, old, ("ClusterRole",)))


def _binding_faults(
    obj: JsonObject, old: JsonObject | None, kinds: tuple[str, ...]
) -> Iterator[FieldError]:
    role = read(obj, "roleRef")
    if text(role, "apiGroup") != RBAC_GROUP:
        yield not_supported("roleRef.apiGroup", text(role, "apiGroup"), (RBAC_GROUP,))
    if text(role, "kind") not in kinds:
        yield not_supported("roleRef.kind", text(role, "kind"), kinds)
    if not text(role, "name"):
        yield required_field("roleRef.name")
    for path, subject in with_paths(obj, "subjects", ""):
        yield from _subject_faults(subject, path.lstrip("."), is_namespaced="Role" in kinds)
    if old is not None and role != read(old, "roleRef"):
        yield invalid("roleRef", role, "cannot change roleRef")


def _subject_faults(subject: JsonObject, path: str, *, is_namespaced: bool) -> Iterator[FieldError]:
    kind, group = text(subject, "kind"), text(subject, "apiGroup")
    if not text(subject, "name"):
        yield required_field(f"{path}.name")
    if kind == "ServiceAccount":
        if group:
            yield not_supported(f"{path}.apiGroup", group, ("",))
        if not text(subject, "namespace") and not is_namespaced:
            yield required_field(f"{path}.namespace")
    elif kind in ("User", "Group"):
        if group != RBAC_GROUP:
            yield not_supported(f"{path}.apiGroup", group, (RBAC_GROUP,))
    else:
        yield not_supported(f"{path}.kind", kind, ("ServiceAccount", "User", "Group"))
