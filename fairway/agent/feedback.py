"""What an agent reports about the objects of a work: feedback values and conditions.

Each manifest brings its own rules. A rule that cannot be evaluated makes its condition False, with
the error as message. Conditions of the work aggregate those of its objects: False wins over
Unknown, and Unknown over True; for `Progressing`, True wins over Unknown, and Unknown over False.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

import msgspec

from fairway.agent.drivers.interface import WorkSeen
from fairway.api.meta import Condition, JsonObject
from fairway.api.work import (
    ConditionRule,
    FeedbackPath,
    FeedbackRule,
    FeedbackValue,
    Manifest,
    ManifestStatus,
    Work,
)
from fairway.kinds.plain import maps_at, name_of, text
from fairway.schema.cel.environment import CompileError, EvaluationError, compile
from fairway.schema.jsonpath import PathError, find

Status = Literal["True", "False", "Unknown"]
COMPLETE = "Complete"

_VALUE_MOST = 1024
_VALUES_MOST = 64
_MESSAGE_MOST = 4096

# Well-known feedback values, by API version and kind.
_WELL_KNOWN: Mapping[tuple[str, str], tuple[FeedbackPath, ...]] = {
    key: tuple(FeedbackPath(name=name, path=path) for name, path in paths)
    for key, paths in {
        ("apps/v1", "Deployment"): (
            ("ReadyReplicas", ".status.readyReplicas"),
            ("Replicas", ".status.replicas"),
            ("AvailableReplicas", ".status.availableReplicas"),
        ),
        ("apps/v1", "StatefulSet"): (
            ("ReadyReplicas", ".status.readyReplicas"),
            ("Replicas", ".status.replicas"),
            ("AvailableReplicas", ".status.availableReplicas"),
        ),
        ("apps/v1", "DaemonSet"): (
            ("NumberReady", ".status.numberReady"),
            ("DesiredNumberScheduled", ".status.desiredNumberScheduled"),
            ("NumberAvailable", ".status.numberAvailable"),
        ),
        ("batch/v1", "Job"): (
            ("JobComplete", '.status.conditions[?(@.type=="Complete")].status'),
            ("JobSucceeded", ".status.succeeded"),
        ),
        ("v1", "Pod"): (
            ("PodReady", '.status.conditions[?(@.type=="Ready")].status'),
            ("PodPhase", ".status.phase"),
        ),
    }.items()
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Feedback:
    """Everything that is reported about the objects of a work."""

    manifests: tuple[ManifestStatus, ...] = ()
    conditions: tuple[Condition, ...] = ()

    @property
    def is_complete(self) -> bool:
        """Whether a rule says that the work is complete, which freezes it."""
        return any(
            condition.type == COMPLETE and condition.status == "True"
            for condition in self.conditions
        )

    def by_rules(self) -> tuple[object, ...]:
        """What comes from rules only; a change is reported at once."""
        own = ("Applied", "Available")
        return (
            tuple(
                (manifest.position, manifest.feedback)
                for manifest in self.manifests
                if manifest.feedback
            ),
            tuple(
                (condition.type, condition.status)
                for condition in self.conditions
                if condition.type not in own
            ),
        )


def has_rules(work: Work) -> bool:
    return any(manifest.feedback or manifest.conditions for manifest in work.spec.manifests)


def feedback_of(work: Work, seen: WorkSeen | None, before: Feedback, *, now: float) -> Feedback:
    """The feedback for a work; a condition with an unchanged status keeps its transition time."""
    moment = datetime.fromtimestamp(now, UTC).replace(microsecond=0)
    known = {manifest.position: manifest for manifest in before.manifests}
    objects = seen.objects_of(work.spec.manifests) if seen is not None else {}
    faults = seen.faults if seen is not None else {}
    manifests = tuple(
        _manifest(
            position,
            manifest,
            (objects.get(position), faults.get(position, "")),
            known.get(position),
            moment,
            work.metadata.generation,
        )
        for position, manifest in enumerate(work.spec.manifests)
    )
    conditions = _lasting(_join(manifests, moment, work.metadata.generation), before.conditions)
    return Feedback(manifests=manifests, conditions=conditions)


def _manifest(
    position: int,
    manifest: Manifest,
    items: tuple[JsonObject | None, str],
    before: ManifestStatus | None,
    moment: datetime,
    generation: int,
) -> ManifestStatus:
    body, fault = items
    made = [
        _apply(body, fault, is_looked_at=manifest.update == "ReadOnly"),
        _available(body),
        *(_by_rule(rule, body) for rule in manifest.conditions if body is not None),
    ]
    conditions = tuple(
        Condition(
            type=kind,
            status=status,
            reason=reason,
            message=message[:_MESSAGE_MOST],
            last_transition_time=moment,
            observed_generation=generation,
        )
        for kind, status, reason, message in made
    )
    identity = body if body is not None else manifest.object
    return ManifestStatus(
        position=position,
        api_version=text(identity, "apiVersion"),
        kind=text(identity, "kind"),
        namespace=text(identity, "metadata", "namespace"),
        name=name_of(identity),
        uid=text(identity, "metadata", "uid"),
        feedback=tuple(_values(manifest.feedback, body))[:_VALUES_MOST] if body is not None else (),
        conditions=_lasting(conditions, before.conditions if before else ()),
    )


_Made = tuple[str, Status, str, str]


def _apply(body: JsonObject | None, fault: str, *, is_looked_at: bool) -> _Made:
    if fault:
        return "Applied", "False", "AppliedManifestFailed", fault
    if body is None and not is_looked_at:
        return "Applied", "Unknown", "AppliedManifestPending", "it is not applied yet"
    return "Applied", "True", "AppliedManifestComplete", ""


def _available(body: JsonObject | None) -> _Made:
    if body is None:
        return "Available", "False", "ResourceNotAvailable", "the object is not there"
    return "Available", "True", "ResourceAvailable", ""


def _by_rule(rule: ConditionRule, body: JsonObject) -> _Made:
    try:
        if rule.type == "WellKnown":
            holds = _well_known(rule.condition, body)
            if holds is None:
                said = f"nothing is known of {rule.condition} for {text(body, 'kind')}"
                return rule.condition, "False", "ConditionRuleInvalid", said
        else:
            holds = all(_is_true(expression, body) for expression in rule.expressions)
        message = rule.message
        if rule.message_expression:
            program = compile(rule.message_expression, {"object": "dyn", "result": "bool"})
            message = str(program.evaluate({"object": body, "result": holds}))
    except (CompileError, EvaluationError) as fault:
        return rule.condition, "False", "ConditionRuleExpressionError", str(fault)
    return rule.condition, "True" if holds else "False", "ConditionRuleEvaluated", message


def _is_true(expression: str, body: JsonObject) -> bool:
    value = compile(expression, {"object": "dyn"}).evaluate({"object": body})
    if not isinstance(value, bool):
        raise EvaluationError(f"{expression!r} is not true or false")
    return value


def _well_known(condition: str, body: JsonObject) -> bool | None:
    """Whether an object is complete, succeeded or failed; None if the rule or kind is unknown."""
    key = (text(body, "apiVersion"), text(body, "kind"))
    if condition != COMPLETE:
        return None
    if key == ("batch/v1", "Job"):
        return any(
            entry.get("type") in ("Complete", "Failed") and entry.get("status") == "True"
            for entry in maps_at(body, "status", "conditions")
        )
    if key == ("v1", "Pod"):
        return text(body, "status", "phase") in ("Succeeded", "Failed")
    return None


def _values(rules: Sequence[FeedbackRule], body: JsonObject) -> Iterator[FeedbackValue]:
    for rule in rules:
        known = _WELL_KNOWN.get((text(body, "apiVersion"), text(body, "kind")), ())
        for path in known if rule.type == "WellKnown" else rule.paths:
            try:
                matches = find(path.path, body)
            except PathError:
                continue
            if len(matches) == 1 and matches[0] is not None:
                yield _value(path.name, matches[0])


def _value(name: str, value: Any) -> FeedbackValue:
    match value:
        case bool():
            return FeedbackValue(name=name, type="Boolean", value="true" if value else "false")
        case int():
            return FeedbackValue(name=name, type="Integer", value=str(value))
        case str():
            return FeedbackValue(name=name, type="String", value=value[:_VALUE_MOST])
        case _:
            plain = msgspec.json.encode(value).decode()
            said = plain if len(plain) <= _VALUE_MOST else ""
            return FeedbackValue(name=name, type="Json", value=said)


def _join(
    manifests: Sequence[ManifestStatus], moment: datetime, generation: int
) -> tuple[Condition, ...]:
    by_type: dict[str, list[Condition]] = {}
    for manifest in manifests:
        for condition in manifest.conditions:
            by_type.setdefault(condition.type, []).append(condition)
    joined = []
    for kind, conditions in by_type.items():
        order: tuple[Status, ...] = ("False", "Unknown", "True")
        if kind == "Progressing":
            order = ("True", "Unknown", "False")
        status = min((condition.status for condition in conditions), key=order.index)
        deciding = [condition for condition in conditions if condition.status == status]
        joined.append(
            Condition(
                type=kind,
                status=status,
                reason=_JOINED_REASONS.get((kind, status), "ConditionRulesAggregated"),
                message=next(
                    (condition.message for condition in deciding if condition.message), ""
                ),
                last_transition_time=moment,
                observed_generation=generation,
            )
        )
    return tuple(joined)


_JOINED_REASONS: Mapping[tuple[str, str], str] = {
    ("Applied", "True"): "AppliedManifestWorkComplete",
    ("Applied", "False"): "AppliedManifestWorkFailed",
    ("Applied", "Unknown"): "AppliedManifestWorkPending",
    ("Available", "True"): "ResourcesAvailable",
    ("Available", "False"): "ResourcesNotAvailable",
}


def _lasting(now: Iterable[Condition], before: Sequence[Condition]) -> tuple[Condition, ...]:
    """Conditions with the time of their last transition."""
    known = {condition.type: condition for condition in before}
    return tuple(
        msgspec.structs.replace(
            condition, last_transition_time=known[condition.type].last_transition_time
        )
        if condition.type in known and known[condition.type].status == condition.status
        else condition
        for condition in now
    )
