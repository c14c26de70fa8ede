"""Faults of a schema's rules, reported when a custom kind is created.

As in Kubernetes, rules are compiled only once the schema around them is valid: faults in the form
of rules are reported alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fairway.api.errors import FieldError, invalid, not_supported, required_field
from fairway.schema.cel import environment, field_path
from fairway.schema.cel.environment import CompileError
from fairway.schema.cel.fields import undefined_field
from fairway.schema.cel.plan import VARIABLES, parts, ready, uses_old_self
from fairway.schema.node import Node, Rule

_REASONS = (
    "FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired",
)  # fmt: skip


def compile_faults(node: Node, path: str) -> list[FieldError]:
    """All faults of all rules in a schema; `path` is the path of the schema."""
    places = list(_places(node, path))
    return [fault for place in places for fault in _form_faults(place[1], place[0], place[2])] or [
        fault for place in places for fault in _meaning_faults(*place)
    ]


def _places(node: Node, path: str) -> Iterator[tuple[str, Rule, Node, str, bool]]:
    """Each rule with its path, its schema, the path of an uncorrelatable list, and whether root."""
    waiting: list[tuple[Node, Node, str, str, frozenset[int]]] = [
        (node, node, path, "", frozenset())
    ]
    while waiting:
        source, shape, at, loose, above = waiting.pop(0)
        if id(source) in above:
            continue
        for place, rule in enumerate(source.rules):
            yield f"{at}.x-kubernetes-validations[{place}]", rule, shape, loose, source is node
        below = above | {id(source)}
        for step, part in parts(source):
            is_loose = step == ".items" and source.list_type != "map"
            # Rules under allOf apply to the same value as those beside it.
            of = shape if step.startswith(".allOf") else part
            waiting.append((part, of, at + step, loose or (at if is_loose else ""), below))


def _form_faults(rule: Rule, path: str, node: Node) -> Iterator[FieldError]:
    message = rule.message.strip()
    if not rule.rule.strip():
        yield required_field(f"{path}.rule", "rule is not specified")
    elif rule.message and not message:
        yield invalid(f"{path}.message", rule.message, "must be non-empty if specified")
    elif "\n" in message:
        yield invalid(f"{path}.message", rule.message, "must not contain line breaks")
    elif "\n" in rule.rule.strip() and not message:
        detail = "message must be specified if rule contains line breaks"
        yield required_field(f"{path}.message", detail)
    if rule.message_expression and not rule.message_expression.strip():
        detail = "messageExpression must be non-empty if specified"
        yield required_field(f"{path}.messageExpression", detail)
    if rule.reason not in _REASONS:
        yield not_supported(f"{path}.reason", rule.reason, _REASONS)
    if rule.field_path and field_path.normalize(rule.field_path, node) is None:
        yield invalid(f"{path}.fieldPath", rule.field_path, "must be a valid path")


def _meaning_faults(
    path: str, rule: Rule, node: Node, loose: str, is_root: bool
) -> Iterator[FieldError]:
    fault = _compile_fault(rule, node, is_root=is_root)
    if fault:
        yield invalid(f"{path}.rule", _show(rule), fault)
        return
    fault = _message_fault(rule, node, is_root=is_root)
    if fault:
        yield invalid(f"{path}.messageExpression", _show(rule), fault)
    uses_old = uses_old_self(rule.rule)
    if uses_old and loose:
        detail = (
            f"oldSelf cannot be used on the uncorrelatable portion of the schema within {loose}"
        )
        yield invalid(f"{path}.rule", rule.rule, detail)
    if rule.optional_old_self and not uses_old:
        detail = "may not be set if oldSelf is not used in rule"
        yield invalid(f"{path}.optionalOldSelf", True, detail)


def _compile_fault(rule: Rule, node: Node, *, is_root: bool) -> str:
    # The final program is compiled too: it knows which fields are times.
    prepared = ready(rule, node, is_resource=is_root or node.embedded_resource)
    if prepared.program is None:
        return f"compilation failed: {prepared.fault}"
    if prepared.program.result not in ("BOOL", "DYN"):
        return "cel expression must evaluate to a bool"
    fault = undefined_field(rule.rule, node, is_resource=is_root or node.embedded_resource)
    return f"compilation failed: {fault}" if fault else ""


def _message_fault(rule: Rule, node: Node, *, is_root: bool) -> str:
    if not rule.message_expression:
        return ""
    try:
        program = environment.compile(rule.message_expression, VARIABLES)
    except CompileError as problem:
        return f"messageExpression compilation failed: {problem.detail}"
    if program.result not in ("STRING", "DYN"):
        return "messageExpression must evaluate to a string"
    is_resource = is_root or node.embedded_resource
    fault = undefined_field(rule.message_expression, node, is_resource=is_resource)
    return f"messageExpression compilation failed: {fault}" if fault else ""


def _show(rule: Rule) -> dict[str, Any]:
    """A rule as Kubernetes shows it in a fault."""
    return {
        "Rule": rule.rule,
        "Message": rule.message,
        "MessageExpression": rule.message_expression,
        "Reason": rule.reason if rule.reason != "FieldValueInvalid" else None,
        "FieldPath": rule.field_path,
        "OptionalOldSelf": rule.optional_old_self or None,
    }
