"""KindRule: an additional native kind, described as data.

A rule says where the manifests of a kind have their pods, how the kind is held, what its status
means and what its own controller would write. Paths are JSONPath, limited to paths that can also be
written; expressions are CEL. docs/guides/kinds.md lists the variables of each expression.
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

# A path from the manifest, or from the role if there is one.
PathText = Annotated[str, limits(max_length=512)]
# An expression that may be empty.
OptionalExpression = Annotated[str, limits(max_length=4096)]


class PodCountRule(Part, frozen=True, kw_only=True):
    """Number of pods of a role, and where it is written."""

    path: Annotated[
        PathText, doc("Path of the number, from the role; empty: always the default.")
    ] = ""
    otherwise: Annotated[PathText, doc("Path to read if there is nothing at path.")] = ""
    default: Annotated[Count, doc("Number of pods if no path has one.")] = 1
    times: Annotated[
        PathText, doc("Path of the number of pods per unit counted, such as hosts per slice.")
    ] = ""


@rules(
    Rule(
        "(has(self.name) && self.name != '') != (has(self.nameFrom) && self.nameFrom != '')",
        "exactly one of name and nameFrom is given",
    )
)
class PodSetRule(JsonPart, frozen=True, kw_only=True):
    """A role, or all roles of a map or list."""

    name: Annotated[OptionalLabel, doc("Name of the pod set, if the path finds one role.")] = ""
    name_from: Annotated[
        OptionalExpression,
        doc(
            "Expression for the name of each pod set, over `key` and `role`; characters that "
            "names do not allow become dashes."
        ),
    ] = ""
    at: Annotated[
        PathText,
        doc("Path of the role, such as spec.head or spec.groups[*]; empty: the manifest."),
    ] = ""
    order: Annotated[
        tuple[str, ...],
        doc("Keys of roles in the order of their pod sets; others follow by name.", max_items=16,
            list_type="atomic"),
    ] = ()  # fmt: skip
    required: Annotated[bool, doc("Whether a manifest without the role is refused.")] = False
    when: Annotated[
        OptionalExpression,
        doc("Expression over `role` for whether the role has pods; empty: always."),
    ] = ""
    template: Annotated[
        PathText, doc("Path of the pod template, from the role.")
    ] = "template"  # fmt: skip
    partial: Annotated[bool, doc("Whether the template is partial, to be merged over `pod`.")] = (
        False
    )
    creates_template: Annotated[
        bool,
        doc(
            "Whether to create a missing template at the path, so that decisions can be written "
            "into it."
        ),
    ] = False
    inline: Annotated[
        bool,
        doc("Whether labels, annotations and the pod's fields are in the template itself."),
    ] = False
    metadata: Annotated[
        PathText,
        doc("Path of labels and annotations, from the template, if the rest is inline."),
    ] = ""
    pod: Annotated[
        JsonObject | None,
        doc(
            "Pod, as `metadata` and `spec`, of a role without a pod template. Strings that "
            "start with = are expressions over `role`; a map is omitted unless its key ? holds; "
            "null is omitted."
        ),
    ] = None
    shapes: Annotated[
        OptionalExpression,
        doc(
            "Expression over `role` for pod specs that run in turn; the largest of each request "
            "counts."
        ),
    ] = ""
    count: Annotated[PodCountRule, doc("Number of pods.")] = PodCountRule()
    least: Annotated[
        OptionalExpression,
        doc(
            "Expression for the minimum useful number of pods, over `role` and `count`; null or "
            "empty: all."
        ),
    ] = ""
    restart_policy: Annotated[
        OptionalExpression,
        doc(
            "Expression over `role` for the restart policy that the controller sets on pods; "
            "empty: the pods' own."
        ),
    ] = ""
    retries: Annotated[
        OptionalExpression,
        doc(
            "Expression over `role` for how often a failed pod is recreated; -1: without limit; "
            "empty: never."
        ),
    ] = ""
    pod_name: Annotated[
        OptionalExpression,
        doc(
            "Expression for the name of a pod, over `name`, `podSet`, `role`, `key` and "
            "`index`; empty: NAME-PODSET-INDEX."
        ),
    ] = ""


class ReplicasRule(Part, frozen=True, kw_only=True):
    """Number of replicas of a Divided kind."""

    path: Annotated[PathText, doc("Path where the number is read and written.")]
    default: Annotated[Count, doc("Number of replicas if there is nothing at path.")] = 1


class HoldRule(JsonPart, frozen=True, kw_only=True):
    """How its own controller is kept from creating pods: two merge patches of the manifest."""

    held: Annotated[
        JsonObject, doc("Patch that holds an object; a manifest that contains all of it is held.")
    ]
    released: Annotated[JsonObject, doc("Patch that releases a held object.")]


@rules(
    Rule(
        "(has(self.value) && self.value != '') != has(self.json)",
        "exactly one of value and json is given",
    )
)
class EnvironmentRule(JsonPart, frozen=True, kw_only=True):
    """A variable that the controller sets in containers; one set by the user is kept."""

    name: Annotated[str, doc("Name of the variable.", min_length=1, max_length=256)]
    value: Annotated[OptionalExpression, doc("Expression for the value.")] = ""
    json: Annotated[
        JsonObject | None,
        doc("Value as JSON; strings that start with = are expressions, null is omitted."),
    ] = None
    when: Annotated[
        OptionalExpression, doc("Expression for whether a pod has the variable; empty: always.")
    ] = ""
    pod_sets: Annotated[
        tuple[Label, ...],
        doc("Pod sets that have the variable; empty: all.", max_items=16, list_type="set"),
    ] = ()


class FileRule(Part, frozen=True, kw_only=True):
    """A file that the controller mounts, such as a list of hosts."""

    path: Annotated[str, doc("Path of the file in containers.", min_length=1, max_length=1024)]
    content: Annotated[
        Expression, doc("Expression for the content, over the same variables as `environment`.")
    ]
    pod_sets: Annotated[
        tuple[Label, ...],
        doc("Pod sets that have the file; empty: all.", max_items=16, list_type="set"),
    ] = ()


class PhaseRule(Part, frozen=True, kw_only=True):
    """What must hold for an object to be in a phase."""

    phase: Annotated[
        Literal["Pending", "Suspended", "Running", "Succeeded", "Failed"], doc("The phase.")
    ]
    when: Annotated[
        Expression, doc("Expression for whether the object is in the phase; no value: it is not.")
    ]
    reason: Annotated[OptionalExpression, doc("Expression for the reason code.")] = ""
    message: Annotated[OptionalExpression, doc("Expression for the message.")] = ""


class StatusRule(Part, frozen=True, kw_only=True):
    """How to read the status of an object."""

    phases: Annotated[
        tuple[PhaseRule, ...],
        doc("Phases; the first match applies, no match: Pending.", min_items=1, max_items=32,
            list_type="atomic"),
    ]  # fmt: skip
    ready: Annotated[
        OptionalExpression, doc("Expression for the number of ready pods or replicas.")
    ] = ""
    succeeded: Annotated[
        OptionalExpression, doc("Expression for the number of pods or replicas that succeeded.")
    ] = ""
    failed: Annotated[
        OptionalExpression, doc("Expression for the number of pods or replicas that failed.")
    ] = ""
    progress: Annotated[OptionalExpression, doc("Expression for the progress, for people.")] = ""
    healthy: Annotated[
        OptionalExpression, doc("Expression for whether a service is healthy; no value: unknown.")
    ] = ""
    current: Annotated[
        OptionalExpression,
        doc(
            "Expression for whether the status is of the newest generation; empty: by "
            "observedGeneration."
        ),
    ] = ""
    sums: Annotated[
        tuple[PathText, ...],
        doc(
            "Paths of numbers in the status that are summed over clusters.",
            max_items=32,
            list_type="set",
        ),
    ] = ()


class PlayRule(JsonPart, frozen=True, kw_only=True):
    """The status that the controller would write, for clusters without that controller."""

    succeeded: Annotated[
        OptionalExpression,
        doc("Expression over the pods for whether it succeeded; empty: if all pods succeeded."),
    ] = ""
    failed: Annotated[
        OptionalExpression,
        doc("Expression over the pods for whether it failed; empty: if any pod failed."),
    ] = ""
    running: Annotated[
        OptionalExpression,
        doc("Expression over the pods for whether it runs; empty: if any pod has started."),
    ] = ""
    status: Annotated[
        JsonObject,
        doc("Status; strings that start with = are expressions, null is omitted."),
    ]


class DependencyRule(Part, frozen=True, kw_only=True):
    """Objects that pods need, besides those that their templates name."""

    api_version: Annotated[str, doc("API version of the objects.", max_length=317)] = "v1"
    kind: Annotated[str, doc("Kind of the objects.", min_length=1, max_length=63)]
    path: Annotated[PathText, doc("Path of their names.")]


class FaultRule(Part, frozen=True, kw_only=True):
    """A reason to refuse a manifest."""

    path: Annotated[PathText, doc("Path of the faulty field.")]
    when: Annotated[Expression, doc("Expression for whether the field is faulty.")]
    message: Annotated[str, doc("Error message.", min_length=1, max_length=1024)]


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
        doc("API versions of the kind, preferred first, such as example.com/v1.", min_items=1,
            max_items=8, list_type="set"),
    ]  # fmt: skip
    kind: Annotated[
        str, doc("Name of the kind.", pattern="^[A-Z][A-Za-z0-9]*$", min_length=1, max_length=63)
    ]
    mode: Annotated[
        Literal["Gang", "Divided", "Independent"], doc("How its pods are placed.")
    ] = "Gang"  # fmt: skip
    replicas: Annotated[ReplicasRule | None, doc("Number of replicas of a Divided kind.")] = None
    pod_sets: Annotated[
        tuple[PodSetRule, ...],
        doc("Roles of the kind.", min_items=1, max_items=16, list_type="atomic"),
    ]
    hold: Annotated[HoldRule | None, doc("How objects are held; unset: they cannot be held.")] = (
        None
    )
    environment: Annotated[
        tuple[EnvironmentRule, ...],
        doc("Variables that the controller sets in containers.", max_items=64,
            list_type="map", list_map_keys=["name"]),
    ] = ()  # fmt: skip
    files: Annotated[
        tuple[FileRule, ...],
        doc("Files that the controller mounts.", max_items=16, list_type="map",
            list_map_keys=["path"]),
    ] = ()  # fmt: skip
    subdomain: Annotated[
        OptionalExpression,
        doc(
            "Expression for the service in which pods find each other as NAME.SUBDOMAIN, over "
            "the same variables as `environment`; empty: none."
        ),
    ] = ""
    labels: Annotated[
        Mapping[Key, Expression],
        doc("Expressions for labels that the controller sets on pods.", max_properties=32),
    ] = {}
    needs_controller: Annotated[
        str,
        doc("Why a local cluster cannot run it without its controller; empty: it can.",
            max_length=1024),
    ] = ""  # fmt: skip
    status: Annotated[StatusRule, doc("How to read the status of an object.")]
    play: Annotated[PlayRule, doc("Status on clusters without the controller.")]
    dependencies: Annotated[
        tuple[DependencyRule, ...],
        doc(
            "Objects that pods need, besides those that their templates name.",
            max_items=32,
            list_type="atomic",
        ),
    ] = ()
    faults: Annotated[
        tuple[FaultRule, ...],
        doc("Reasons to refuse a manifest.", max_items=32, list_type="atomic"),
    ] = ()


class KindRuleStatus(Part, frozen=True, kw_only=True):
    """Whether the rule is in use."""

    observed_generation: Annotated[
        int, doc("Generation of the object that this status reflects.")
    ] = 0
    conditions: Annotated[Conditions, doc("Latest observations of the rule's state.")] = ()


def _api_version() -> str:
    return f"{KINDS_GROUP}/{VERSION}"


class KindRule(Object, frozen=True, kw_only=True):
    """An additional native kind, described as data."""

    api_group: ClassVar[str] = KINDS_GROUP
    api_version: str = field(default_factory=_api_version)
    spec: Annotated[KindRuleSpec, doc("The kind, described as data.")]
    status: Annotated[KindRuleStatus, doc("Whether the rule is in use.")] = KindRuleStatus()
