"""Autoscalers that an object has beside ours: two that set one count would fight for ever.

A HorizontalPodAutoscaler may be on the hub, or among the manifests that go to clusters; KServe
makes its own for an InferenceService whose minimum and maximum replicas differ. One that can give
way does so if the FleetAutoscaler asks for that.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from fairway.api.errors import ApiError, NotFound
from fairway.api.meta import JsonObject
from fairway.controllers.autoscaling.services import NotScalable, Service, change_object
from fairway.kinds.plain import annotation, child, number, text
from fairway.store.interface import Deletion, ResourceKey, Selection, Store, Write

AUTOSCALERS_OF_PODS = ResourceKey("autoscaling", "v2", "horizontalpodautoscalers")
KSERVE_CLASS = "serving.kserve.io/autoscalerClass"
_KSERVE_OFF = ("none", "external")
_WRITE = Write(user="system:fairway", manager="fairway-autoscaling")


@dataclass(frozen=True, slots=True, kw_only=True)
class Other:
    """Another autoscaler of the same object."""

    name: str  # for people
    advice: str  # how to make it give way
    on_hub: JsonObject | None = None  # its object, if it is on the hub
    change: JsonObject | None = None  # to the scaled object, which switches it off

    @property
    def gives_way(self) -> bool:
        return self.on_hub is not None or self.change is not None


async def others_of(service: Service, *, store: Store, looks_on_hub: bool = True) -> list[Other]:
    """All autoscalers that the object has beside ours."""
    on_hub = await _on_hub(service, store) if looks_on_hub else []
    return [*_in_template(service), *_of_kserve(service), *on_hub]


async def send_away(other: Other, service: Service, *, store: Store) -> None:
    """Makes another autoscaler give way."""
    if other.change is not None:
        await change_object(service, other.change, store=store)
    if other.on_hub is not None:
        metadata = other.on_hub["metadata"]
        with suppress(NotFound):  # already deleted
            await store.delete(
                AUTOSCALERS_OF_PODS,
                metadata["name"],
                namespace=service.namespace,
                how=Deletion(uid=metadata.get("uid", "")),
                write=_WRITE,
            )


def _in_template(service: Service) -> Iterator[Other]:
    kept = {
        (manifest.get("kind"), text(manifest, "metadata", "name")) for manifest in service.manifests
    }
    for manifest in service.manifests:
        if manifest.get("kind") == "HorizontalPodAutoscaler":
            target = child(manifest, "spec", "scaleTargetRef")
            if (target.get("kind"), target.get("name")) in kept:
                yield Other(
                    name=f"HorizontalPodAutoscaler {text(manifest, 'metadata', 'name')}",
                    advice="take it out of the manifests of the workload",
                )
        elif service.kind is None and _scales_itself(manifest):
            yield Other(
                name="KServe", advice=f"annotate the manifest with {KSERVE_CLASS}: external"
            )


def _of_kserve(service: Service) -> Iterator[Other]:
    if _scales_itself(service.target):
        yield Other(
            name="KServe",
            advice="set takeOver: true, or make maxReplicas equal to minReplicas",
            change={"metadata": {"annotations": {KSERVE_CLASS: "external"}}},
        )


def _scales_itself(manifest: JsonObject) -> bool:
    """Whether KServe would set the count: by default if minimum and maximum differ."""
    if manifest.get("kind") != "InferenceService":
        return False
    if annotation(manifest, KSERVE_CLASS) in _KSERVE_OFF:
        return False
    least = number(manifest, "spec", "predictor", "minReplicas", default=1)
    return number(manifest, "spec", "predictor", "maxReplicas", default=least) != least


async def _on_hub(service: Service, store: Store) -> list[Other]:
    selection = Selection(namespace=service.namespace)
    try:
        listing = await store.list(AUTOSCALERS_OF_PODS, selection)
    except NotFound:
        return []  # this hub does not serve the kind, so nothing acts on it
    except ApiError as fault:
        message = f"whether another autoscaler sets its count is not known: {fault}"
        raise NotScalable("OtherAutoscalersUnknown", message) from fault
    names = {(service.target["kind"], service.target["metadata"]["name"])}
    others = []
    for stored in listing.items:
        other = stored.object()
        target = child(other, "spec", "scaleTargetRef")
        if (target.get("kind"), target.get("name")) in names:
            others.append(
                Other(
                    name=f"HorizontalPodAutoscaler {other['metadata']['name']} on the hub",
                    advice="delete it, or set takeOver: true",
                    on_hub=other,
                )
            )
    return others
