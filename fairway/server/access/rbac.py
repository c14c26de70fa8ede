"""Decides by Kubernetes' RBAC objects whether a request may be made.

The authorizer keeps every Role, ClusterRole and binding, from watch events. Bindings are indexed by
subject, so a decision looks only at what the user and its groups hold; the rules of one user in one
namespace are indexed by resource; and decisions are cached. Any change of any RBAC object drops the
cached rules and decisions. Rights only add up: nothing in RBAC takes one away.

ClusterRoles with an aggregation rule hold the rules of all roles their selectors match. They are
aggregated here, so a new role counts at once; `unwritten_aggregations` returns what a controller
should write back for people to see.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from fairway.api.errors import Forbidden
from fairway.api.selectors import matches, read_label_selector
from fairway.server.access.identity import MASTERS, Identity, service_account_user
from fairway.server.access.rbac_rules import Attributes, Rule, quote

GROUP = "rbac.authorization.k8s.io"
_DECISIONS_MAX = 16_384
_GRANTS_MAX = 4_096
# Angle brackets and ampersands would let a name read as HTML in a browser.
_HARMLESS = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether a request is allowed, and why."""

    allowed: bool
    reason: str = ""


_MASTER = Decision(True)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Role:
    rules: tuple[Rule, ...]
    labels: Mapping[str, str]
    selectors: tuple[Mapping[str, Any], ...]  # not empty: the rules come from other roles
    raw: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Binding:
    namespace: str
    name: str
    role_kind: str
    role_name: str
    subjects: tuple[tuple[str, str, str], ...]  # index key ("User" or "Group", name), description

    def source(self, subject: str) -> str:
        kind, name = "ClusterRoleBinding", self.name
        if self.namespace:
            kind, name = "RoleBinding", f"{self.name}/{self.namespace}"
        return f"{kind} {quote(name)} of {self.role_kind} {quote(self.role_name)} to {subject}"


class _Grants:
    """The rules of one user in one namespace, each with its source, indexed by resource."""

    __slots__ = ("_by_resource", "_paths", "missing", "rules")

    def __init__(self, held: Iterable[tuple[str, Rule]], missing: tuple[str, ...]) -> None:
        self.rules = tuple(held)
        self.missing = missing
        self._by_resource: dict[str, list[tuple[str, Rule]]] = {}
        self._paths = [(source, rule) for source, rule in self.rules if rule.urls]
        for source, rule in self.rules:
            for resource in dict.fromkeys(rule.resources):
                self._by_resource.setdefault(resource, []).append((source, rule))

    def decide(self, wanted: Attributes) -> Decision:
        for source, rule in self._candidates(wanted):
            if rule.allows_path(wanted) if wanted.path else rule.allows_resource(wanted):
                return Decision(True, f"RBAC: allowed by {source}")
        if not self.missing:
            return Decision(False)
        shown = self.missing[0] if len(self.missing) == 1 else f"[{', '.join(self.missing)}]"
        return Decision(False, f"RBAC: {shown}")

    def _candidates(self, wanted: Attributes) -> list[tuple[str, Rule]]:
        if wanted.path:
            return self._paths
        candidates = [*self._by_resource.get(wanted.combined, ()), *self._by_resource.get("*", ())]
        if wanted.subresource:
            candidates += self._by_resource.get(f"*/{wanted.subresource}", ())
        return candidates


class Authorizer:
    """Every RBAC object of the hub, ready to decide."""

    def __init__(self, objects: Iterable[Mapping[str, Any]] = ()) -> None:
        self._roles: dict[tuple[str, str], _Role] = {}  # namespace ("" for cluster roles), name
        self._bindings: dict[tuple[str, str], _Binding] = {}
        # By ("User" or "Group", name), then by namespace and name: the binding, and how it
        # describes this subject.
        self._bindings_by_subject: dict[
            tuple[str, str], dict[tuple[str, str], tuple[_Binding, str]]
        ] = {}
        self._rules_of_role: dict[tuple[str, str], tuple[Rule, ...]] = {}
        self._grants: dict[tuple[str, tuple[str, ...], str], _Grants] = {}
        self._decisions: dict[Attributes, Decision] = {}
        for object_ in objects:
            self.upsert(object_)

    def upsert(self, raw: Mapping[str, Any]) -> None:
        """Adds or replaces a Role, ClusterRole, RoleBinding or ClusterRoleBinding."""
        metadata = _mapping(raw.get("metadata"))
        is_local = raw.get("kind") in ("Role", "RoleBinding")
        namespace = str(metadata.get("namespace") or "") if is_local else ""
        if is_local and not namespace:
            # Stored without a namespace, it would grant its rights in all of them.
            raise ValueError(f"a {raw.get('kind')} without a namespace")
        key = (namespace, str(metadata.get("name") or ""))
        match raw.get("kind"):
            case "Role" | "ClusterRole":
                self._roles[key] = _role(raw)
            case "RoleBinding" | "ClusterRoleBinding":
                self._take_binding(key)
                self._put_binding(key, _binding(raw, *key))
            case other:
                raise ValueError(f"not an RBAC object: {other}")
        self._forget()

    def remove(self, kind: str, name: str, namespace: str = "") -> None:
        """Removes an object; a missing one is no error."""
        if (kind in ("Role", "RoleBinding")) != bool(namespace):
            return
        if kind in ("RoleBinding", "ClusterRoleBinding"):
            self._take_binding((namespace, name))
        else:
            self._roles.pop((namespace, name), None)
        self._forget()

    def authorize(self, wanted: Attributes) -> Decision:
        """Whether the request is allowed. What no rule allows is denied."""
        if MASTERS in wanted.groups:
            return _MASTER
        decision = self._decisions.get(wanted)
        if decision is None:
            namespace = "" if wanted.path else wanted.namespace
            decision = self._hold(wanted.user, wanted.groups, namespace).decide(wanted)
            if len(self._decisions) >= _DECISIONS_MAX:
                self._decisions.clear()
            self._decisions[wanted] = decision
        return decision

    def rules_for(self, identity: Identity, namespace: str) -> tuple[Rule, ...]:
        """Every rule an identity holds in a namespace or cluster-wide."""
        held = self._hold(identity.user, identity.groups, namespace)
        return tuple(rule for _, rule in held.rules)

    def namespaces_of(self, identity: Identity) -> list[str]:
        """The namespaces with a binding of an identity or of one of its groups."""
        subjects = (("User", identity.user), *(("Group", group) for group in identity.groups))
        places = (
            place for subject in subjects for place in self._bindings_by_subject.get(subject, ())
        )
        return sorted({namespace for namespace, _ in places if namespace})

    def bound(self) -> Iterator[tuple[str, str, str]]:
        """Everyone to whom a role is bound: by which binding, `User` or `Group`, and the name."""
        for (namespace, name), binding in self._bindings.items():
            for kind, subject, _ in binding.subjects:
                yield f"{namespace}/{name}", kind, subject

    def rules_of_role(self, kind: str, name: str, namespace: str = "") -> tuple[Rule, ...] | None:
        """The rules of a role, aggregated ones included; None when there is no such role."""
        key = (namespace if kind == "Role" else "", name)
        if kind not in ("Role", "ClusterRole") or key not in self._roles:
            return None
        if kind == "Role" and not namespace:
            return None
        rules = self._rules_of_role.get(key)
        if rules is None:
            rules = self._rules_of_role[key] = self._aggregate(key)
        return rules

    def unwritten_aggregations(self) -> list[dict[str, Any]]:
        """Aggregated ClusterRoles whose stored rules differ from those they should have."""
        changed: list[dict[str, Any]] = []
        for key, role in sorted(self._roles.items(), key=lambda item: item[0]):
            if role.selectors:
                rules = self.rules_of_role("ClusterRole", key[1])
                if rules is not None and rules != role.rules:
                    changed.append({**role.raw, "rules": [rule.raw() for rule in rules]})
        return changed

    def _forget(self) -> None:
        self._rules_of_role.clear()
        self._grants.clear()
        self._decisions.clear()

    def _hold(self, user: str, groups: tuple[str, ...], namespace: str) -> _Grants:
        key = (user, groups, namespace)
        held = self._grants.get(key)
        if held is None:
            held = self._gather(user, groups, namespace)
            if len(self._grants) >= _GRANTS_MAX:
                self._grants.clear()
            self._grants[key] = held
        return held

    def _gather(self, user: str, groups: tuple[str, ...], namespace: str) -> _Grants:
        source_by_binding: dict[tuple[str, str], tuple[_Binding, str]] = {}
        for subject in (("User", user), *(("Group", group) for group in groups)):
            for place, value in self._bindings_by_subject.get(subject, {}).items():
                if place[0] in ("", namespace):
                    source_by_binding.setdefault(place, value)
        held: list[tuple[str, Rule]] = []
        missing: list[str] = []
        for _, (binding, described) in sorted(source_by_binding.items(), key=lambda item: item[0]):
            rules = self.rules_of_role(binding.role_kind, binding.role_name, binding.namespace)
            if rules is None:
                role = f"{binding.role_kind.lower()}.{GROUP}"
                missing.append(f"{role} {quote(binding.role_name)} not found")
                continue
            source = binding.source(described)
            held.extend((source, rule) for rule in rules)
        return _Grants(held, tuple(dict.fromkeys(missing)))

    def _put_binding(self, key: tuple[str, str], binding: _Binding) -> None:
        self._bindings[key] = binding
        for kind, name, described in binding.subjects:
            by_place = self._bindings_by_subject.setdefault((kind, name), {})
            by_place.setdefault(key, (binding, described))

    def _take_binding(self, key: tuple[str, str]) -> None:
        old = self._bindings.pop(key, None)
        for kind, name, _ in old.subjects if old else ():
            by_place = self._bindings_by_subject.get((kind, name), {})
            by_place.pop(key, None)
            if not by_place:
                self._bindings_by_subject.pop((kind, name), None)

    def _aggregate(self, start: tuple[str, str]) -> tuple[Rule, ...]:
        """A role's own rules, or those of all roles its selectors match, each role once."""
        rules: dict[Rule, None] = {}
        seen = {start}

        def gather(key: tuple[str, str]) -> None:
            role = self._roles[key]
            if not role.selectors:
                rules.update(dict.fromkeys(role.rules))
                return
            for other in sorted(self._roles):
                if other[0] == "" and other not in seen:
                    labels = self._roles[other].labels
                    if any(
                        matches(read_label_selector(selector), labels)
                        for selector in role.selectors
                    ):
                        seen.add(other)
                        gather(other)

        gather(start)
        return tuple(rules)


def forbidden(wanted: Attributes, reason: str = "") -> Forbidden:
    """The Forbidden error of a request: it says what was asked, and not what exists."""
    user = f"User {quote(wanted.user)} cannot {wanted.verb}"
    if wanted.path:
        said = f"{user} path {quote(wanted.path)}"
    else:
        place = f"in the namespace {quote(wanted.namespace)}"
        if not wanted.namespace:
            place = "at the cluster scope"
        resource = f"resource {quote(wanted.combined)}"
        said = f"{user} {resource} in API group {quote(wanted.group)} {place}"
    said = said.translate(_HARMLESS) + (f": {reason}" if reason else "")
    return refusal(said, wanted.group, wanted.resource, wanted.name)


def refusal(said: str, group: str, resource: str, name: str) -> Forbidden:
    """A Forbidden error on one resource, worded and detailed as Kubernetes does."""
    qualified = f"{resource}.{group}" if group else resource
    subject = f"{qualified} {quote(name)} is " if name else f"{qualified} is "
    details = {"name": name, "group": group, "kind": resource}
    return Forbidden(
        f"{subject if resource else ''}forbidden: {said}",
        details={key: value for key, value in details.items() if value},
    )


def exact_name(field_selector: str) -> str:
    """The one name a field selector asks for, or "".

    A list, watch or deletecollection with `metadata.name=x` counts as a request for `x` alone, so
    rules with resource names can allow it.
    """
    for part in field_selector.split(","):
        key, sign, value = part.partition("=")
        if sign and key.strip() == "metadata.name":
            name = value.removeprefix("=").strip()
            if name not in (".", "..") and not set(name) & set("/%\\"):
                return name
    return ""


def _role(raw: Mapping[str, Any]) -> _Role:
    aggregation = _mapping(raw.get("aggregationRule")) if raw.get("kind") == "ClusterRole" else {}
    return _Role(
        rules=tuple(Rule.of(rule) for rule in _mappings(raw.get("rules"))),
        labels=_mapping(_mapping(raw.get("metadata")).get("labels")),
        selectors=tuple(_mappings(aggregation.get("clusterRoleSelectors"))),
        raw=raw,
    )


def _binding(raw: Mapping[str, Any], namespace: str, name: str) -> _Binding:
    reference = _mapping(raw.get("roleRef"))
    subjects: list[tuple[str, str, str]] = []
    for subject in _mappings(raw.get("subjects")):
        kind, of = str(subject.get("kind")), str(subject.get("name") or "")
        if kind in ("User", "Group"):
            subjects.append((kind, of, f"{kind} {quote(of)}"))
        elif kind == "ServiceAccount":
            # A subject without a namespace is in the binding's namespace.
            home = str(subject.get("namespace") or namespace)
            if home:
                described = f"{kind} {quote(f'{of}/{home}')}"
                subjects.append(("User", service_account_user(home, of), described))
    return _Binding(
        namespace=namespace,
        name=name,
        role_kind=str(reference.get("kind") or ""),
        role_name=str(reference.get("name") or ""),
        subjects=tuple(subjects),
    )


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _mappings(value: object) -> list[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []
