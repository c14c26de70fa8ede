"""Works by workload and cluster, kept by a watch; a work has one name in all clusters.

Controllers read works here alone: agents may create works, and those that the hub did not decide
are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from fairway.api.names import work_name, work_namespace
from fairway.api.work import Work
from fairway.api.workload import Workload
from fairway.controllers.adoption import is_believed, is_named
from fairway.controllers.cache import Cache
from fairway.controllers.proofs import Proofs
from fairway.store.interface import Stored
from fairway.store.keys import CLUSTERS, WORKS
from fairway.store.mirrors import Name

# Called with the workload, as (namespace, name), of a work that changed.
RosterFollower = Callable[[Name], None]


class Roster:
    """Works by workload and by cluster."""

    def __init__(self, cache: Cache, proofs: Proofs) -> None:
        self.followers: list[RosterFollower] = []
        self._cache = cache
        self._proofs = proofs
        self._namespaces: dict[str, set[str]] = {}  # by name of the work
        self._names: dict[str, set[str]] = {}  # by namespace of the cluster
        self._workloads: dict[str, Name] = {}  # by name of the work
        mirror = cache.mirror(WORKS)
        mirror.followers.append(self._follow)
        for name, stored in mirror.items():
            self._follow(name, stored)

    def works(self, workload: Name) -> dict[str, Work]:
        """The works of a workload, by cluster."""
        return {work.spec.cluster: work for work in self._all(workload) if self._is_believed(work)}

    def strangers(self, workload: Name) -> dict[str, Work]:
        """Works that agents made and the hub did not decide, by the cluster they are made for."""
        strangers = [work for work in self._all(workload) if not self._is_believed(work)]
        if not strangers:
            return {}
        clusters = {work_namespace(name): name for _, name in self._cache.names(CLUSTERS)}
        return {
            clusters[work.metadata.namespace]: work
            for work in strangers
            if work.metadata.namespace in clusters
        }

    def work(self, cluster: str, name: str) -> Work | None:
        """The work of this name in a cluster."""
        work = self._cache.get(Work, name, work_namespace(cluster))
        return work if work is not None and self._is_believed(work) else None

    def highest_term(self) -> int:
        """The highest term under which any of these works was decided."""
        works = (
            work
            for namespace, names in self._names.items()
            for name in names
            if (work := self._cache.get(Work, name, namespace)) is not None
        )
        return max((work.spec.term for work in works if self._is_believed(work)), default=0)

    def _all(self, workload: Name) -> Iterator[Work]:
        name = work_name(*workload)
        for namespace in sorted(self._namespaces.get(name, ())):
            work = self._cache.get(Work, name, namespace)
            if work is not None:
                yield work

    def _is_believed(self, work: Work) -> bool:
        reference = work.spec.workload
        workload = self._cache.get(Workload, reference.name, reference.namespace)
        return is_believed(work, workload, self._proofs)

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
            workload = _workload_of(known)
            self._workloads[work] = workload
            self._namespaces.setdefault(work, set()).add(namespace)
            self._names.setdefault(namespace, set()).add(work)
        if workload is not None:
            for follow in self.followers:
                follow(workload)


def _workload_of(work: Work) -> Name:
    """The workload of a work; the name of a work that names another one does not lie."""
    reference = work.spec.workload
    if is_named(work):
        return (reference.namespace, reference.name)
    namespace, _, name = work.metadata.name.partition(".")
    return (namespace, name)


def key_of(workload: Workload) -> Name:
    return (workload.metadata.namespace, workload.metadata.name)
