"""No user grants a right that they do not hold.

To write a role, a user must hold every right in it, or the verb `escalate` on roles. To write a
binding, a user must hold every right of the role it names, or the verb `bind` on that role. A role
that aggregates others by labels may come to hold anything, so writing it takes every right.

These checks follow the usual authorization, on the object as it would be stored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fairway.api.errors import NotFound
from fairway.server.access.identity import MASTERS, Identity
from fairway.server.access.rbac import GROUP, Authorizer, refusal
from fairway.server.access.rbac_rules import (
    Attributes,
    Rule,
    compact,
    quote,
    quoted_list,
    uncovered_rules,
)

_EVERYTHING = (
    Rule(verbs=("*",), groups=("*",), resources=("*",)),
    Rule(verbs=("*",), urls=("*",)),
)
_PLURALS = {
    "Role": "roles",
    "ClusterRole": "clusterroles",
    "RoleBinding": "rolebindings",
    "ClusterRoleBinding": "clusterrolebindings",
}


def confirm(
    authorizer: Authorizer,
    identity: Identity,
    new: Mapping[str, Any],
    *,
    old: Mapping[str, Any] | None = None,
    namespace: str = "",
    request_name: str = "",
) -> None:
    """Raises Forbidden when writing `new` would grant what the writer does not hold.

    `request_name` is the name in the request's path: "" when an object is posted to a collection.
    Objects of kinds other than the four of RBAC pass.
    """
    kind = new.get("kind", "")
    if kind not in _PLURALS or MASTERS in identity.groups:
        return
    if old is not None and _only_collection_fields_differ(new, old):
        return
    place = namespace if kind in ("Role", "RoleBinding") else ""
    if kind in ("Role", "ClusterRole"):
        _confirm_role(authorizer, identity, new, old, place, request_name)
    else:
        _confirm_binding(authorizer, identity, new, place)


def _confirm_role(
    authorizer: Authorizer,
    identity: Identity,
    new: Mapping[str, Any],
    old: Mapping[str, Any] | None,
    namespace: str,
    request_name: str,
) -> None:
    plural = _PLURALS[new["kind"]]
    wanted = Attributes(
        user=identity.user,
        groups=identity.groups,
        verb="escalate",
        group=GROUP,
        resource=plural,
        namespace=namespace,
        name=request_name,
    )
    if authorizer.authorize(wanted).allowed:
        return
    name = _name(new)
    rules = [Rule.of(rule) for rule in new.get("rules") or ()]
    said = _escalation(authorizer, identity, namespace, rules)
    if said:
        raise refusal(said, GROUP, plural, name)
    gathers = _gathers(new) or (old is not None and _gathers(old))
    if gathers and _escalation(authorizer, identity, namespace, _EVERYTHING):
        said = "must have cluster-admin privileges to use the aggregationRule"
        raise refusal(said, GROUP, plural, name)


def _confirm_binding(
    authorizer: Authorizer, identity: Identity, new: Mapping[str, Any], namespace: str
) -> None:
    reference = new.get("roleRef") or {}
    role_kind, role_name = str(reference.get("kind", "")), str(reference.get("name", ""))
    plural = _PLURALS.get(role_kind, "")
    wanted = Attributes(
        user=identity.user,
        groups=identity.groups,
        verb="bind",
        group=str(reference.get("apiGroup") or GROUP),
        resource=plural,
        namespace=namespace,
        name=role_name,
    )
    if plural and authorizer.authorize(wanted).allowed:
        return
    rules = authorizer.rules_of_role(role_kind, role_name, namespace)
    if rules is None:
        # Like Kubernetes: the binding's kind, with the role's name.
        kind = _PLURALS[new["kind"]]
        details = {"name": role_name, "group": GROUP, "kind": kind}
        raise NotFound(f"{kind}.{GROUP} {quote(role_name)} not found", details=details)
    said = _escalation(authorizer, identity, namespace, rules)
    if said:
        raise refusal(said, GROUP, _PLURALS[new["kind"]], _name(new))


def _escalation(
    authorizer: Authorizer, identity: Identity, namespace: str, rules: Sequence[Rule]
) -> str:
    """The rights in these rules that the identity does not hold, as a sentence; or ""."""
    missing = uncovered_rules(authorizer.rules_for(identity, namespace), rules)
    if not missing:
        return ""
    shown = "\n".join(sorted({str(rule) for rule in compact(missing)}))
    return (
        f"user {quote(identity.user)} (groups={quoted_list(identity.groups)}) is attempting to "
        f"grant RBAC permissions not currently held:\n{shown}"
    )


def _only_collection_fields_differ(new: Mapping[str, Any], old: Mapping[str, Any]) -> bool:
    """Whether only owner references and finalizers change, which garbage collection writes."""
    return _without_collection_fields(new) == _without_collection_fields(old)


def _without_collection_fields(raw: Mapping[str, Any]) -> dict[str, Any]:
    left_out = ("ownerReferences", "finalizers", "managedFields", "resourceVersion")
    metadata = {
        key: value for key, value in (raw.get("metadata") or {}).items() if key not in left_out
    }
    return {**raw, "metadata": metadata}


def _gathers(raw: Mapping[str, Any]) -> bool:
    return bool((raw.get("aggregationRule") or {}).get("clusterRoleSelectors"))


def _name(raw: Mapping[str, Any]) -> str:
    return str((raw.get("metadata") or {}).get("name") or "")
