"""HTTPRoutes of the Gateway API: which backend belongs to which cluster, and what to write.

A route names its workload by an annotation. A backend belongs to a cluster if the annotation
`serving.fairway.dev/backends` says so (`CLUSTER=BACKEND`, comma-separated), else if its name is the
name of the cluster or ends with it. Only weights are written, one by one, and each only if the
backend is still the one that was read: everything else belongs to other clients.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from fairway.api.meta import JsonObject
from fairway.api.serving import SERVING_GROUP
from fairway.kinds.plain import annotation, maps_at, number, text
from fairway.serving.traffic import differs

WORKLOAD = f"{SERVING_GROUP}/workload"
BACKENDS = f"{SERVING_GROUP}/backends"
_WEIGHT = 1  # of a backend without one


def workload_of(route: JsonObject) -> str:
    """The workload that a route is for; empty: it does not ask for weights."""
    return annotation(route, WORKLOAD)


def backend_clusters(route: JsonObject) -> dict[str, str]:
    """Clusters of backends, as set on the route."""
    pairs = (part.partition("=") for part in annotation(route, BACKENDS).split(","))
    return {backend.strip(): cluster.strip() for cluster, sign, backend in pairs if sign}


def cluster_of(backend: str, clusters: Collection[str], given: Mapping[str, str]) -> str:
    """The cluster of a backend; empty if it has none."""
    if backend in given:
        return given[backend] if given[backend] in clusters else ""
    ending = [
        cluster for cluster in clusters if backend == cluster or backend.endswith(f"-{cluster}")
    ]
    return max(ending, key=len, default="")


def changes(route: JsonObject, weights: Mapping[str, int], *, least: int) -> list[JsonObject]:
    """A JSON patch that gives the backends of clusters their weights; none: they have them.

    `weights` names all clusters of the fleet: those where the service is not get none.

    A rule without a backend of a cluster is not touched, nor is one where nothing is ready: a route
    whose weights are all zero would refuse all requests.
    """
    if not any(weights.values()):
        return []
    made: list[JsonObject] = []
    given = backend_clusters(route)
    for at, rule in enumerate(maps_at(route, "spec", "rules")):
        references = maps_at(rule, "backendRefs")
        owners = [
            cluster_of(text(reference, "name"), weights.keys(), given) for reference in references
        ]
        known = [(str(where), owner) for where, owner in enumerate(owners) if owner]
        before = {
            where: number(references[int(where)], "weight", default=_WEIGHT) for where, _ in known
        }
        after = {where: weights[cluster] for where, cluster in known}
        if any(after.values()) and differs(before, after, least=least):
            for where, weight in after.items():
                if weight == before[where]:
                    continue
                path = f"/spec/rules/{at}/backendRefs/{where}"
                name = text(references[int(where)], "name")
                made.append({"op": "test", "path": f"{path}/name", "value": name})
                made.append({"op": "add", "path": f"{path}/weight", "value": weight})
    return made


def weights_in(route: JsonObject) -> Iterable[int]:
    for rule in maps_at(route, "spec", "rules"):
        for backend_ref in maps_at(rule, "backendRefs"):
            yield number(backend_ref, "weight", default=_WEIGHT)
