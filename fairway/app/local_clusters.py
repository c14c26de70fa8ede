"""How the local clusters of a hub run pods: isolated where this machine can.

A pod that is not isolated can do what the hub can: it reads the hub's tokens, and has its rights.
That is right for a user who has these rights anyway. So on a machine that cannot isolate, a hub
with tenants starts no pods, unless its administrator trusts all of them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import cached_property
from pathlib import Path

from fairway.agent.drivers.local.driver import LocalDriver
from fairway.agent.drivers.local.isolation import (
    Isolation,
    NotIsolated,
    check_folders,
    find_isolation,
)
from fairway.agent.drivers.local.plans import Limits
from fairway.api.cluster import Cluster
from fairway.clock import Clock
from fairway.kinds.registry import KnownKinds

_log = logging.getLogger(__name__)


class LocalClusters:
    """Makes the drivers of local clusters."""

    def __init__(
        self,
        *,
        hidden: tuple[Path, ...] = (),
        folders: tuple[Path, ...] = (),
        is_trusting: bool = False,
        find_tenant: Callable[[], str] = lambda: "",
    ) -> None:
        """Pods never see what is `hidden`, and may all use `folders` of the machine.

        RefusedFolder if pods could reach what is hidden through one of these folders.
        """
        check_folders(folders, hidden)
        self._hidden = hidden
        self._folders = folders
        self._is_trusting = is_trusting
        self._find_tenant = find_tenant
        self._warned: set[str] = set()

    def driver(
        self, cluster: Cluster, kinds: KnownKinds, clock: Clock, *, folder: Path
    ) -> LocalDriver:
        assert cluster.spec.local is not None, "a local cluster"
        isolation, why = self._isolation
        name = cluster.metadata.name
        if isolation is None and name not in self._warned:
            self._warned.add(name)
            _log.warning(
                "pods of the local cluster %s are not isolated: %s. They can read what the hub can "
                "read, its tokens too (docs/guides/local-clusters.md)",
                *(name, why),
            )

        def why_not() -> str:
            tenant = "" if isolation or self._is_trusting else self._find_tenant()
            return tenant and (
                f"this machine cannot isolate pods ({why}), and this hub has tenants ({tenant}): "
                "install bubblewrap, or trust them all with --trust-local"
            )

        return LocalDriver(
            cluster,
            kinds.of,
            clock,
            folder=folder,
            isolation=isolation,
            limits=Limits(
                grace_seconds=float(cluster.spec.local.stop_seconds),
                host_roots=self._folders,
                shares_working_directories=lambda: not self._find_tenant(),
            ),
            why_not=why_not,
        )

    @cached_property
    def _isolation(self) -> tuple[Isolation | None, str]:
        """How pods are isolated here, or why they are not."""
        try:
            return find_isolation(self._hidden), ""
        except NotIsolated as why:
            return None, str(why)
