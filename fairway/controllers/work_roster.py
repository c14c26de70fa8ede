"""Works by workload and cluster, kept by a watch; a work has one name in all clusters."""

from __future__ import annotations

from collections.abc import Callable

from fairway.api.names import work_name
from fairway.api.work import Work
from fairway.api.workload import Workload
from fairway.controllers.cache import Cache
from fairway.store.interface import Stored
from fairway.store.keys import WORKS
from fairway.store.mirrors import Name

# Called with the workload, as (namespace, name), of a work that changed.
RosterFollower = Callable[[Name], None]


class Roster:
    """Works by workload and by cluster."""

    def __init__(self, cache: Cache) -> None:
        self.followers: list[RosterFollower] = []
        self._cache = cache
        self._namespaces: dict[str, set[str]] = {}  # by name of the work
        self._names: dict[str, set[str]] = {}  # by namespace of the cluster
        self._workloads: dict[str, Name] = {}  # by name of the work
        mirror = cache.mirror(WORKS)
        mirror.followers.append(self._follow)
        for name, stored in mirror.items():
            self._follow(name, stored)

    def works(self, workload: Name) -> dict[str, Work]:
        """The works of a workload, by cluster."""
        name = work_name(*workload)
        result = {}
        for namespace in sorted(self._namespaces.get(name, ())):
            work = self._cache.get(Work, name, namespace)
            if work is not None:
                result[work.spec.cluster] = work
        return result

    def has(self, workload: Name) -> bool:
        return work_name(*workload) in self._namespaces

    def workload_of(self, work: str) -> Name | None:
        return self._workloads.get(work)

    def in_cluster(self, namespace: str) -> list[str]:
        """Names of the works in the namespace of a cluster."""
        return sorted(self._names.get(namespace, ()))

    def _follow(self, name: Name, stored: Stored | None) -> None:
        namespace, work = name
        if stored is None:
            self._namespaces.get(work, set()).discard(namespace)
            self._names.get(namespace, set()).discard(work)
            workload = self._workloads.get(work)
            if not self._namespaces.get(work):
                self._namespaces.pop(work, None)
                self._workloads.pop(work, None)
        else:
            known = self._cache.get(Work, work, namespace)
            assert known is not None, "what is told of is in the mirror"
            reference = known.spec.workload
            workload = (reference.namespace, reference.name)
            self._workloads[work] = workload
            self._namespaces.setdefault(work, set()).add(namespace)
            self._names.setdefault(namespace, set()).add(work)
        if workload is not None:
            for follow in self.followers:
                follow(workload)


def key_of(workload: Workload) -> Name:
    return (workload.metadata.namespace, workload.metadata.name)
