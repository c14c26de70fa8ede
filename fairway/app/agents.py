"""The agents inside the hub: of simulated clusters, of this machine, and of Kubernetes clusters.

The Kubernetes clusters are those that the hub reaches by itself.
"""

from __future__ import annotations

import base64
import binascii
from pathlib import Path

from fairway.agent.agent import Agent, Beside
from fairway.agent.drivers.interface import Driver, DriverFault
from fairway.agent.drivers.kubernetes.driver import KubernetesDriver
from fairway.agent.drivers.simulated.driver import Worlds
from fairway.agent.fleet import Agents
from fairway.agent.join.token_renewal import Renewing
from fairway.agent.memory import Memory
from fairway.agent.settings import AgentSettings
from fairway.api.cluster import Cluster
from fairway.api.errors import ApiError, NotFound
from fairway.app.inventories import inventory_of
from fairway.app.local_clusters import LocalClusters
from fairway.client.access import Access
from fairway.client.errors import ClientError
from fairway.client.kubeconfig import access_of_text, load_access
from fairway.clock import Clock
from fairway.kinds.registry import KnownKinds
from fairway.metrics.interface import NoSources, Sources
from fairway.sealing import Keyring
from fairway.store.interface import Store
from fairway.store.keys import SECRETS


def make_agents(  # noqa: PLR0913 - the parts that a composition root chooses
    store: Store,
    folder: Path,
    *,
    kinds: KnownKinds,
    clock: Clock,
    worlds: Worlds | None = None,
    local: LocalClusters | None = None,
    is_inline: bool = False,
    keys: Keyring | None = None,
    sources: Sources | None = None,
) -> Agents:
    """Agents for every cluster that this process looks after.

    `worlds` are simulated clusters that outlive the hub; without them each hub has its own. On
    virtual time, which threads cannot follow, everything runs in one thread: `is_inline`.
    """
    worlds = worlds or Worlds(kinds.of, clock)
    local = local or LocalClusters()

    def make(cluster: Cluster, settings: AgentSettings) -> Agent | None:
        own = folder / cluster.metadata.name
        driver: Driver
        if cluster.spec.simulated is not None:
            if cluster.spec.simulated.faults.outage:
                worlds.forget(cluster.metadata.name)
                return None
            driver = worlds.driver(cluster)
        elif cluster.spec.local is not None:
            driver = local.driver(cluster, kinds, clock, folder=own / "pods")
        elif cluster.spec.kubernetes is not None and cluster.spec.kubernetes.connection == "Push":
            driver = _kubernetes(store, cluster, kinds, clock)
        else:
            return None
        # A simulated cluster ends with the hub, so its memory need not survive a power cut.
        is_lasting = cluster.spec.simulated is None
        memory = Memory(own, is_inline=is_inline, is_synced=is_lasting, keys=keys)
        return Agent(
            cluster.metadata.name,
            store=store,
            driver=driver,
            memory=memory,
            find_kind=kinds.of,
            clock=clock,
            settings=settings,
            beside=Beside(inventory=inventory_of(cluster, clock), sources=sources or NoSources()),
        )

    return Agents(store, make, clock=clock, removed=worlds.forget)


def _kubernetes(store: Store, cluster: Cluster, kinds: KnownKinds, clock: Clock) -> Driver:
    async def find_access() -> Access:
        try:
            return await access_to(store, cluster)
        except (ApiError, ClientError) as fault:
            raise DriverFault(str(fault)) from fault

    renewing = Renewing(store, cluster, clock)
    return KubernetesDriver(
        cluster, kinds.of, clock, find_access=find_access, keep_access=renewing.run
    )


async def access_to(store: Store, cluster: Cluster) -> Access:
    """How a hub reaches a Kubernetes cluster.

    By the kubeconfig in the Secret that the cluster names, else by that of the hub's own user.
    """
    settings = cluster.spec.kubernetes
    assert settings is not None, "a Kubernetes cluster"
    named = settings.kubeconfig
    if named is None:
        return load_access(context=settings.context)
    source = f"key {named.key} of Secret {named.namespace}/{named.name}"
    secret = (await store.get(SECRETS, named.name, named.namespace)).object()
    held = (secret.get("data") or {}).get(named.key)
    if held is None:
        raise NotFound(f"there is no {source}", details={})
    try:
        text = base64.b64decode(held, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError) as fault:
        raise NotFound(f"{source} holds no text: {fault}", details={}) from fault
    return access_of_text(text, source=source, context=settings.context)
