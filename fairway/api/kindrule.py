"""KindRule: a further native kind, described as data.

A rule says where the pods of a kind stand in its manifests, how it is held, what its status means
and what its own controller would write. Paths are JSONPath, as far as one can also write at them;
expressions are CEL. What an expression may look at is listed in docs/guides/kinds.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from msgspec import field

from fairway.api.doc import (
    Count,
    Expression,
    Key,
    Label,
    OptionalLabel,
    Rule,
    doc,
    limits,
    rules,
)
from fairway.api.meta import VERSION, Conditions, JsonObject, JsonPart, Object, Part

KINDS_GROUP = "kinds.fairway.dev"

# A path from the manifest, or from the role where a role is at hand.
PathText = Annotated[str, limits(max_length=512)]
# An expression that may be left out.
OptionalExpression = Annotated[str, limits(max_length=4096)]


class PodCountRule(Part, frozen=True, kw_only=True):
    """How many pods a role has, and where that number is written."""

    path: Annotated[
        PathText, doc("Where the number stands, from the role; empty: it is always the default.")
    ] = ""
    otherwise: Annotated[PathText, doc("Where it is read if nothing stands at the path.")] = ""
    default: Annotated[Count, doc("The number if it stands nowhere.")] = 1
    times: Annotated[
        PathText, doc("Where the number of pods of each one stands, such as hosts of a slice.")
    ] = ""


@rules(
    Rule(
        "(has(self.name) && self.name != '') != (has(self.nameFrom) && self.nameFrom != '')",
        "exactly one of name and nameFrom is given",
    )
)
class PodSetRule(JsonPart, frozen=True, kw_only=True):
    """A role, or all roles of a map or list."""

    name: Annotated[OptionalLabel, doc("Name of the pod set, where the path finds one role.")] = ""
    name_from: Annotated[
        OptionalExpression,
        doc("Name of each pod set, over `key` and `role`; other characters become dashes."),
    ] = ""
    at: Annotated[
        PathText,
        doc("Where the role stands, such as spec.head or spec.groups[*]; empty: the manifest."),
    ] = ""
    order: Annotated[
        tuple[str, ...],
        doc("Keys of roles in the order of their pod sets; others follow by name.", max_items=16,
            list_type="atomic"),
    ] = ()  # fmt: skip
    required: Annotated[bool, doc("Whether a manifest without the role is refused.")] = False
    when: Annotated[
        OptionalExpression, doc("Whether the role has pods, over `role`; empty: always.")
    ] = ""
    template: Annotated[
        PathText, doc("Where the pod template stands, from the role.")
    ] = "template"  # fmt: skip
    partial: Annotated[
        bool, doc("Whether what stands there is a part of a template, to be laid over `pod`.")
    ] = False
    creates_template: Annotated[
        bool,
        doc("Whether a missing template is made at the path, for decisions to be written in."),
    ] = False
    inline: Annotated[
        bool,
        doc("Whether labels, annotations and the pod's fields stand in the template itself."),
    ] = False
    metadata: Annotated[
        PathText,
        doc("Where labels and annotations stand, from the template, if the rest is inline."),
    ] = ""
    pod: Annotated[
        JsonObject | None,
        doc(
            "The pod, `metadata` and `spec`, of a role without a pod template; texts that start "
            "with = are expressions over `role`, a map is left out unless its key ? holds, and "
            "null is left out."
        ),
    ] = None
    shapes: Annotated[
        OptionalExpression,
        doc("Pod specs that take turns, over `role`; the largest of each request counts."),
    ] = ""
    count: Annotated[PodCountRule, doc("How many pods.")] = PodCountRule()
    least: Annotated[
        OptionalExpression,
        doc("Fewest pods of use, over `role` and `count`; null or empty: all."),
    ] = ""
    restart_policy: Annotated[
        OptionalExpression,
        doc("Restart policy that its controller gives to pods, over `role`; empty: their own."),
    ] = ""
    retries: Annotated[
        OptionalExpression,
        doc("How often a failed pod is made anew, over `role`; -1: for ever; empty: never."),
    ] = ""
    pod_name: Annotated[
        OptionalExpression,
        doc("Name of a pod, over `name`, `podSet`, `role`, `key` and `index`; empty: all joined."),
    ] = ""


class ReplicasRule(Part, frozen=True, kw_only=True):
    """How many copies a Divided kind has."""

    path: Annotated[PathText, doc("Where the number stands and is written.")]
    default: Annotated[Count, doc("The number if it stands nowhere.")] = 1


class HoldRule(JsonPart, frozen=True, kw_only=True):
    """How its own controller is told to make no pods: two merge patches of the manifest."""

    held: Annotated[JsonObject, doc("Patch that holds; a manifest that has all of it is held.")]
    released: Annotated[JsonObject, doc("Patch that releases one that is held.")]


@rules(
    Rule(
        "(has(self.value) && self.value != '') != has(self.json)",
        "exactly one of value and json is given",
    )
)
class EnvironmentRule(JsonPart, frozen=True, kw_only=True):
    """A variable that its controller gives to containers; one the user wrote is kept."""

    name: Annotated[str, doc("Name of the variable.", min_length=1, max_length=256)]
    value: Annotated[OptionalExpression, doc("Its text.")] = ""
    json: Annotated[
        JsonObject | None,
        doc("Its text as JSON; texts in it that start with = are expressions, null is left out."),
    ] = None
    when: Annotated[OptionalExpression, doc("Whether a pod has it; empty: always.")] = ""
    pod_sets: Annotated[
        tuple[Label, ...],
        doc("Pod sets that have it; none means all.", max_items=16, list_type="set"),
    ] = ()


class FileRule(Part, frozen=True, kw_only=True):
    """A file that its controller mounts, such as a list of hosts."""

    path: Annotated[str, doc("Where containers see it.", min_length=1, max_length=1024)]
    content: Annotated[Expression, doc("Its text, over the same as `environment`.")]
    pod_sets: Annotated[
        tuple[Label, ...],
        doc("Pod sets that have it; none means all.", max_items=16, list_type="set"),
    ] = ()


class PhaseRule(Part, frozen=True, kw_only=True):
    """What must be true of an object to be in a phase."""

    phase: Annotated[
        Literal["Pending", "Suspended", "Running", "Succeeded", "Failed"], doc("The phase.")
    ]
    when: Annotated[Expression, doc("Whether it is; what has no value does not match.")]
    reason: Annotated[OptionalExpression, doc("Why, as a code.")] = ""
    message: Annotated[OptionalExpression, doc("Why, as a sentence.")] = ""


class StatusRule(Part, frozen=True, kw_only=True):
    """What the status of an object says."""

    phases: Annotated[
        tuple[PhaseRule, ...],
        doc("Phases; the first that matches counts, none: Pending.", min_items=1, max_items=32,
            list_type="atomic"),
    ]  # fmt: skip
    ready: Annotated[OptionalExpression, doc("How many pods or replicas are ready.")] = ""
    succeeded: Annotated[OptionalExpression, doc("How many have succeeded.")] = ""
    failed: Annotated[OptionalExpression, doc("How many have failed.")] = ""
    progress: Annotated[OptionalExpression, doc("What a person would like to read.")] = ""
    healthy: Annotated[
        OptionalExpression, doc("Whether a service is healthy; no value: not known.")
    ] = ""
    current: Annotated[
        OptionalExpression,
        doc("Whether the status is of the newest generation; empty: by observedGeneration."),
    ] = ""
    sums: Annotated[
        tuple[PathText, ...],
        doc("Numbers of the status that add up over clusters.", max_items=32, list_type="set"),
    ] = ()


class PlayRule(JsonPart, frozen=True, kw_only=True):
    """The status that its own controller would write, for clusters that have no such controller."""

    succeeded: Annotated[
        OptionalExpression, doc("Whether it is done, over the pods; empty: all have succeeded.")
    ] = ""
    failed: Annotated[
        OptionalExpression, doc("Whether it has failed, over the pods; empty: any has failed.")
    ] = ""
    running: Annotated[
        OptionalExpression, doc("Whether it runs, over the pods; empty: any has started.")
    ] = ""
    status: Annotated[
        JsonObject,
        doc("The status; texts that start with = are expressions, null is left out."),
    ]


class DependencyRule(Part, frozen=True, kw_only=True):
    """Objects that pods need, beyond those that their templates name."""

    api_version: Annotated[str, doc("API version of the objects.", max_length=317)] = "v1"
    kind: Annotated[str, doc("Kind of the objects.", min_length=1, max_length=63)]
    path: Annotated[PathText, doc("Where their names stand.")]


class FaultRule(Part, frozen=True, kw_only=True):
    """A reason to refuse a manifest."""

    path: Annotated[PathText, doc("The field that is wrong.")]
    when: Annotated[Expression, doc("Whether it is.")]
    message: Annotated[str, doc("What is wrong with it.", min_length=1, max_length=1024)]


@rules(
    Rule(
        "(self.mode == 'Divided') == has(self.replicas)",
        "replicas are needed with mode: Divided, and refused otherwise",
        ".replicas",
    )
)
class KindRuleSpec(Part, frozen=True, kw_only=True):
    """A kind, described as data."""

    api_versions: Annotated[
        tuple[str, ...],
        doc("Versions of the kind, the preferred one first, such as example.com/v1.", min_items=1,
            max_items=8, list_type="set"),
    ]  # fmt: skip
    kind: Annotated[
        str, doc("The kind.", pattern="^[A-Z][A-Za-z0-9]*$", min_length=1, max_length=63)
    ]
    mode: Annotated[
        Literal["Gang", "Divided", "Independent"], doc("How its pods are placed.")
    ] = "Gang"  # fmt: skip
    replicas: Annotated[ReplicasRule | None, doc("Copies of a Divided kind.")] = None
    pod_sets: Annotated[
        tuple[PodSetRule, ...],
        doc("Its roles.", min_items=1, max_items=16, list_type="atomic"),
    ]
    hold: Annotated[HoldRule | None, doc("How it is held; unset: it can't be.")] = None
    environment: Annotated[
        tuple[EnvironmentRule, ...],
        doc("Variables that its controller gives to containers.", max_items=64,
            list_type="map", list_map_keys=["name"]),
    ] = ()  # fmt: skip
    files: Annotated[
        tuple[FileRule, ...],
        doc("Files that its controller mounts.", max_items=16, list_type="map",
            list_map_keys=["path"]),
    ] = ()  # fmt: skip
    subdomain: Annotated[
        OptionalExpression,
        doc("Service in which pods find each other as NAME.SUBDOMAIN, over the same; empty: none."),
    ] = ""
    labels: Annotated[
        Mapping[Key, Expression],
        doc("Labels that its controller gives to pods.", max_properties=32),
    ] = {}
    needs_controller: Annotated[
        str,
        doc("Why no local cluster can run it without its controller; empty: it can.",
            max_length=1024),
    ] = ""  # fmt: skip
    status: Annotated[StatusRule, doc("What the status of an object says.")]
    play: Annotated[PlayRule, doc("The status on clusters without its controller.")]
    dependencies: Annotated[
        tuple[DependencyRule, ...],
        doc("Objects that pods need, beyond their templates.", max_items=32, list_type="atomic"),
    ] = ()
    faults: Annotated[
        tuple[FaultRule, ...],
        doc("Reasons to refuse a manifest.", max_items=32, list_type="atomic"),
    ] = ()


class KindRuleStatus(Part, frozen=True, kw_only=True):
    """Whether the rule is in use."""

    observed_generation: Annotated[int, doc("Generation that the status was made from.")] = 0
    conditions: Annotated[Conditions, doc("State of the rule, aspect by aspect.")] = ()


def _api_version() -> str:
    return f"{KINDS_GROUP}/{VERSION}"


class KindRule(Object, frozen=True, kw_only=True):
    """A further native kind, described as data."""

    api_group: ClassVar[str] = KINDS_GROUP
    api_version: str = field(default_factory=_api_version)
    spec: Annotated[KindRuleSpec, doc("The kind, described as data.")]
    status: Annotated[KindRuleStatus, doc("Whether the rule is in use.")] = KindRuleStatus()
