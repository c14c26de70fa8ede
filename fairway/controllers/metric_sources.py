"""Measuring: which metric source to query, as set by the fleet or by an object.

A tenant's object may name a server of its own only where the fleet allows it, since the hub calls
that server. It may send only secrets of its own namespace, since the server learns them.
"""

from __future__ import annotations

import base64
import binascii

from fairway.api.errors import ApiError
from fairway.api.fleet import PrometheusServer
from fairway.api.meta import SecretReference
from fairway.controllers.context import Context
from fairway.metrics.interface import (
    Address,
    NoPodMeter,
    PodMeter,
    Refused,
    Source,
    Sources,
    Unreachable,
)
from fairway.store.keys import SECRETS


class Measuring:
    """The metric sources of a hub, for controllers that decide by metrics."""

    def __init__(
        self, context: Context, *, sources: Sources, meter: PodMeter | None = None
    ) -> None:
        self.meter = meter or NoPodMeter()
        self._store = context.store
        self._cache = context.cache
        self._sources = sources

    async def source(self, own: PrometheusServer | None, namespace: str) -> Source:
        """The source for an object of a namespace; MetricsFault if there is none."""
        settings = self._cache.fleet().spec.metrics
        if own is not None and not settings.allow_own_servers:
            raise Refused("the fleet does not allow servers of one's own (metrics.allowOwnServers)")
        if own is not None and own.token is not None and own.token.namespace != namespace:
            raise Refused(f"the token must be a Secret of the namespace {namespace}")
        return self._sources.at(await self.prometheus(own))

    async def prometheus(self, own: PrometheusServer | None) -> Address:
        """A server of Prometheus, with its token; without one of its own, that of the fleet."""
        server = own or self._cache.fleet().spec.metrics.prometheus
        if server is None:
            raise Refused("the fleet names no Prometheus (metrics.prometheus.url)")
        return await self.address(server.url, server.token, server.authority)

    async def address(
        self, url: str, token: SecretReference | None, authority: str = ""
    ) -> Address:
        """An address with its token, read now: a token that was rotated counts at once."""
        text = await self._token(token) if token is not None else ""
        return Address(url=url, token=text, authority=authority)

    async def _token(self, where: SecretReference) -> str:
        named = f"the Secret {where.namespace}/{where.name}"
        try:
            secret = (await self._store.get(SECRETS, where.name, where.namespace)).object()
        except ApiError as fault:
            raise Unreachable(f"{named} with the token cannot be read: {fault}") from fault
        try:
            text = (secret.get("data") or {})[where.key]
            return base64.b64decode(text, validate=True).decode().strip()
        except KeyError as fault:
            raise Refused(f"{named} has no key {where.key}") from fault
        except (binascii.Error, UnicodeDecodeError) as fault:
            raise Refused(f"{named} holds no text in {where.key}") from fault
