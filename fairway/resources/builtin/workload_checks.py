"""Faults of Deployments, StatefulSets and Jobs: selectors, templates, and immutable fields."""

from __future__ import annotations

from collections.abc import Iterator

from fairway.api.errors import FieldError, forbidden, invalid, not_supported, required_field
from fairway.resources.builtin.parts import members, number, read, text, with_paths
from fairway.resources.builtin.pod_checks import choices, spec_faults
from fairway.schema.node import JsonObject

IMMUTABLE = "field is immutable"
_NOT_NEGATIVE = "must be greater than or equal to 0"
_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")

_STATEFUL_SET_CHANGEABLE = (
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
)
_STATEFUL_SET_UPDATE = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', "
    "'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and "
    "'minReadySeconds' are forbidden"
)
# Template fields of a suspended job that never ran, which queueing systems may change.
_SUSPENDED_METADATA = ("labels", "annotations")
_SUSPENDED_SPEC = ("nodeSelector", "tolerations", "schedulingGates", "affinity")


def deployment(obj: JsonObject, old: JsonObject | None) -> list[FieldError]:
    spec = read(obj, "spec")
    faults = _counts(spec, ("replicas", "minReadySeconds", "revisionHistoryLimit"))
    faults.extend(_selector_faults(spec, "deployment"))
    faults.extend(
        choices(read(spec, "strategy"), {"type": ("Recreate", "RollingUpdate")}, "spec.strategy")
    )
    faults.extend(_rolling_faults(read(spec, "strategy")))
    faults.extend(_template_faults(spec, ("Always",)))
    if old is not None:
        faults.extend(_unchanged(spec, read(old, "spec"), ("selector",)))
    return faults


def stateful_set(obj: JsonObject, old: JsonObject | None) -> list[FieldError]:
    spec = read(obj, "spec")
    faults = _counts(spec, ("replicas", "minReadySeconds", "revisionHistoryLimit"))
    faults.extend(_selector_faults(spec, "statefulset"))
    management = text(spec, "podManagementPolicy")
    if management not in ("OrderedReady", "Parallel"):
        message = "must be 'OrderedReady' or 'Parallel'"
        faults.append(invalid("spec.podManagementPolicy", management, message))
    faults.extend(_template_faults(spec, ("Always",)))
    if old is not None:
        before = read(old, "spec")
        changed = {key for key in spec.keys() | before.keys() if spec.get(key) != before.get(key)}
        if changed - set(_STATEFUL_SET_CHANGEABLE):
            faults.append(forbidden("spec", _STATEFUL_SET_UPDATE))
    return faults


def job(obj: JsonObject, old: JsonObject | None) -> list[FieldError]:
    spec = read(obj, "spec")
    faults = _counts(
        spec,
        (
            "parallelism",
            "completions",
            "activeDeadlineSeconds",
            "backoffLimit",
            "ttlSecondsAfterFinished",
            "backoffLimitPerIndex",
            "maxFailedIndexes",
        ),
    )
    faults.extend(choices(spec, {"completionMode": ("NonIndexed", "Indexed")}, "spec"))
    if spec.get("completionMode") == "Indexed" and spec.get("completions") is None:
        faults.append(required_field("spec.completions", "when completion mode is Indexed"))
    if spec.get("backoffLimitPerIndex") is not None and spec.get("completionMode") != "Indexed":
        message = "requires indexed completion mode"
        faults.append(invalid("spec.backoffLimitPerIndex", spec["backoffLimitPerIndex"], message))
    faults.extend(_template_faults(spec, ("OnFailure", "Never")))
    if not read(spec, "selector"):
        faults.append(required_field("spec.selector"))
    elif not faults:
        faults.extend(_mismatch(spec))
    if old is not None:
        faults.extend(_job_update_faults(obj, old))
    return faults


def _job_update_faults(obj: JsonObject, old: JsonObject) -> Iterator[FieldError]:
    spec, before = read(obj, "spec"), read(old, "spec")
    fixed = ["selector", "completionMode", "podFailurePolicy", "backoffLimitPerIndex"]
    if spec.get("completionMode") != "Indexed":
        fixed.append("completions")
    elif spec.get("completions") not in (before.get("completions"), spec.get("parallelism")):
        message = "can only be modified in tandem with spec.parallelism"
        yield invalid("spec.completions", spec.get("completions"), message)
    yield from _unchanged(spec, before, tuple(fixed))
    template, template_before = read(spec, "template"), read(before, "template")
    status = read(old, "status")
    suspended = before.get("suspend") is True and not status.get("startTime")
    if suspended:
        template, template_before = _place(template), _place(template_before)
    if template != template_before:
        yield invalid("spec.template", read(spec, "template"), IMMUTABLE)


def _place(template: JsonObject) -> JsonObject:
    """A template without the placement fields that may change while its job is suspended."""
    metadata, spec = dict(read(template, "metadata")), dict(read(template, "spec"))
    for name in _SUSPENDED_METADATA:
        metadata.pop(name, None)
    for name in _SUSPENDED_SPEC:
        spec.pop(name, None)
    return {"metadata": metadata, "spec": spec}


def _counts(spec: JsonObject, names: tuple[str, ...]) -> list[FieldError]:
    return [
        invalid(f"spec.{name}", spec[name], _NOT_NEGATIVE)
        for name in names
        if number(spec, name) < 0
    ]


def _unchanged(spec: JsonObject, old: JsonObject, names: tuple[str, ...]) -> Iterator[FieldError]:
    for name in names:
        if spec.get(name) != old.get(name):
            yield invalid(f"spec.{name}", spec.get(name), IMMUTABLE)


def _rolling_faults(strategy: JsonObject) -> Iterator[FieldError]:
    rolling = read(strategy, "rollingUpdate")
    path = "spec.strategy.rollingUpdate"
    if strategy.get("type") == "Recreate" and rolling:
        message = "may not be specified when strategy `type` is 'Recreate'"
        yield forbidden(path, message)
        return
    if rolling and all(rolling.get(name) in (0, "0%") for name in ("maxSurge", "maxUnavailable")):
        message = "may not be 0 when `maxSurge` is 0"
        yield invalid(f"{path}.maxUnavailable", rolling["maxUnavailable"], message)


def _template_faults(spec: JsonObject, restarts: tuple[str, ...]) -> Iterator[FieldError]:
    path = "spec.template.spec"
    template = read(spec, "template", "spec")
    yield from spec_faults(template, path)
    restart = text(template, "restartPolicy")
    if restart == "Always" not in restarts:
        # A missing policy was defaulted to Always; the message fits both cases.
        allowed = ", ".join(f'"{restart}"' for restart in restarts)
        yield required_field(f"{path}.restartPolicy", f"valid values: {allowed}")
    elif restart and restart not in restarts:
        yield not_supported(f"{path}.restartPolicy", restart, restarts)


def _selector_faults(spec: JsonObject, kind: str) -> Iterator[FieldError]:
    selector = spec.get("selector")
    if not isinstance(selector, dict):
        yield required_field("spec.selector")
        yield from _mismatch(spec)
        return
    faults = list(selector_faults(selector, "spec.selector"))
    yield from faults
    if faults:
        yield invalid("spec.selector", selector, "invalid label selector")
    elif not selector.get("matchLabels") and not selector.get("matchExpressions"):
        yield invalid("spec.selector", selector, f"empty selector is invalid for {kind}")
    else:
        yield from _mismatch(spec)


def selector_faults(selector: JsonObject, path: str) -> Iterator[FieldError]:
    for at, expression in with_paths(selector, "matchExpressions", path):
        operator, values = text(expression, "operator"), members(expression, "values")
        if operator not in _OPERATORS:
            yield invalid(f"{at}.operator", operator, "not a valid selector operator")
        elif operator in ("In", "NotIn") and not values:
            message = "must be specified when `operator` is 'In' or 'NotIn'"
            yield required_field(f"{at}.values", message)
        elif operator in ("Exists", "DoesNotExist") and values:
            message = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            yield forbidden(f"{at}.values", message)


def _mismatch(spec: JsonObject) -> Iterator[FieldError]:
    """A selector that does not match the template's labels; a missing one matches nothing."""
    labels = read(spec, "template", "metadata", "labels")
    selector = spec.get("selector")
    if not isinstance(selector, dict) or not selects(selector, labels):
        message = "`selector` does not match template `labels`"
        yield invalid("spec.template.metadata.labels", labels or None, message)


def selects(selector: JsonObject, labels: JsonObject) -> bool:
    """Whether a label selector matches these labels."""
    wanted = read(selector, "matchLabels")
    if any(labels.get(key) != value for key, value in wanted.items()):
        return False
    for member in members(selector, "matchExpressions"):
        key, values = text(member, "key"), members(member, "values")
        held = {
            "In": labels.get(key) in values,
            "NotIn": labels.get(key) not in values,
            "Exists": key in labels,
            "DoesNotExist": key not in labels,
        }
        if not held.get(text(member, "operator"), False):
            return False
    return True
