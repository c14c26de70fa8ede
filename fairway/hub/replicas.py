"""A replica of a hub among the others: where they are, and lines to them.

Every replica listens for the others at its own port, and publishes its address in one Lease. An
agent calls one of them; a replica that is asked about a pod and has no line to its agent asks the
others, one after another, over the same frames by which agents are asked. A forwarded question is
never forwarded again, so there is one hop at most.

Replicas identify each other by a certificate that only a replica can have: it is signed by the
authority that all of them share. The Lease is only a hint: writing another address into it gains
nothing, since no server there has such a certificate.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec

from fairway.api.errors import AlreadyExists, ApiError, NotFound, Unavailable
from fairway.api.names import REPLICAS
from fairway.client.access import Access
from fairway.clock import Clock
from fairway.hub.authority import with_shared_authority
from fairway.hub.on_kubernetes import NAMESPACE
from fairway.kubeapi import KubeApi
from fairway.loops import end
from fairway.schema.node import JsonObject
from fairway.server.access import certificates
from fairway.server.access.certificates import REPLICA, ServingFiles
from fairway.server.wire.exchange import Meeting, Request, Response, json_response
from fairway.server.wire.http import HttpServer
from fairway.store.interface import BY_HUB, Patch, Store
from fairway.store.keys import LEASES
from fairway.streams.line import USUAL, Limits, Line, Serve, Socket

_log = logging.getLogger(__name__)

_PATH = "/replicas/stream"
_PROTOCOL = "v1.replica.fairway.dev"
_MARK = "replica.fairway.dev/"  # prefix of the annotations, one for each replica
_BEAT_SECONDS = 30.0  # between heartbeats
_GONE_SECONDS = 300.0  # without a heartbeat; then any replica removes it from the list
_LINE_BEAT_SECONDS = 15.0
_CONNECT_SECONDS = 3.0  # how long to wait for another replica
_AVOIDED_SECONDS = 10.0  # for which a replica that did not answer is not asked
_RENEWAL_SECONDS = 12 * 3600.0
_REPLICAS_MOST = 16
_FAREWELL_SECONDS = 3.0
_ANYWHERE = ("0.0.0.0", "::", "")  # noqa: S104 - compared only


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """What a replica publishes about itself."""

    address: str
    beat: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaAddress:
    """Where a replica listens for others, and the address that they see."""

    data: Path
    address: str = "127.0.0.1"
    port: int = 0  # any free one
    shown: str = ""  # the address for others; empty: the one above, or this machine's name

    def url(self, port: int) -> str:
        here = socket.gethostname() if self.address in _ANYWHERE else self.address
        host = self.shown or here
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


class Replicas:
    """One replica, and its connections to the others."""

    def __init__(
        self, store: Store, clock: Clock, files: ServingFiles, *, limits: Limits = USUAL
    ) -> None:
        self._store = store
        self._clock = clock
        self._files = files
        self._limits = limits
        self._own = ""  # its address
        self._beat = 0
        self._heard: dict[str, tuple[str, float]] = {}  # what others last published, and since when
        self._avoided: dict[str, float] = {}  # addresses that did not answer, and until when
        self._lines: dict[str, asyncio.Task[Line]] = {}  # by address
        self._running: set[asyncio.Task[None]] = set()
        self._taken: set[Line] = set()  # from replicas that called
        # Answers questions of another replica, from lines of this one alone.
        self.serve: Serve | None = None

    async def lines(self) -> AsyncIterator[Line]:
        """Lines to the other replicas that answer."""
        for address in await self._others():
            if self._avoided.get(address, 0.0) > self._clock.monotonic():
                continue
            opening = self._lines.get(address)
            if opening is None:
                opening = self._lines[address] = asyncio.ensure_future(self._open(address))
            try:
                yield await asyncio.shield(opening)
            except (ApiError, OSError) as fault:
                _log.warning("the replica at %s does not answer: %s", address, fault)
                self._lines.pop(address, None)
                self._avoid(address)

    def _avoid(self, address: str) -> None:
        now = self._clock.monotonic()
        self._avoided = {value: until for value, until in self._avoided.items() if until > now}
        self._avoided[address] = now + _AVOIDED_SECONDS

    async def _others(self) -> list[str]:
        """The published addresses of the others."""
        try:
            lease = (await self._store.get(LEASES, REPLICAS, NAMESPACE)).object()
        except ApiError as fault:
            _log.warning("other replicas are not known: %s", fault)
            return []
        said = (_read(text) for text in _marks(lease).values())
        result = sorted({other.address for other in said if other is not None} - {self._own})
        return result[:_REPLICAS_MOST]

    async def _open(self, address: str) -> Line:
        """A line to another replica; it stays open until it breaks."""
        access = Access(
            server=f"https://{address}",
            authority=self._files.authority or b"",
            certificate=await asyncio.to_thread(self._files.certificate.read_bytes),
            key=await asyncio.to_thread(self._files.key.read_bytes),
            tls_server_name=REPLICA,
        )
        opened: asyncio.Future[Line] = asyncio.get_running_loop().create_future()
        task = asyncio.ensure_future(self._hold(access, opened))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        task.add_done_callback(lambda _: self._lines.pop(address, None))
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                return await opened
        except TimeoutError:
            task.cancel()
            raise  # an OSError, like any other broken connection

    async def _hold(self, access: Access, opened: asyncio.Future[Line]) -> None:
        api = KubeApi(access, self._clock)
        try:
            async with api.websocket(
                _PATH, protocols=(_PROTOCOL,), beat_seconds=_LINE_BEAT_SECONDS
            ) as connection:
                line = Line(connection, self._clock, limits=self._limits)
                if not opened.done():
                    opened.set_result(line)
                with suppress(OSError):
                    await line.run()
        except (ApiError, OSError) as fault:
            if not opened.done():
                opened.set_exception(fault)
        finally:
            await api.close()

    # What the others see.

    async def answer(self, request: Request) -> Response:
        """Takes the line of another replica; TLS has already checked its certificate."""
        if request.path != _PATH or request.header("upgrade").lower() != "websocket":
            return json_response(NotFound("there is nothing else here").status(), status=404)
        if len(self._taken) >= _REPLICAS_MOST:
            busy = Unavailable("too many replicas have called")
            return json_response(busy.status(), status=busy.code)
        meeting = Meeting(hold=self._take, protocols=(_PROTOCOL,), beat_seconds=_LINE_BEAT_SECONDS)
        return Response(status=101, meeting=meeting)

    async def _take(self, connection: Socket) -> None:
        line = Line(connection, self._clock, serve=self.serve, limits=self._limits)
        self._taken.add(line)
        try:
            with suppress(ConnectionError):
                await line.run()
        finally:
            self._taken.discard(line)

    async def tell(self, address: str) -> None:
        """Publishes the address of this replica while it runs; then removes it."""
        self._own = address
        unheard = ""
        try:
            while True:
                try:
                    await self.beat()
                    unheard = ""
                except (ApiError, OSError) as fault:
                    if str(fault) != unheard:
                        _log.warning("cannot tell the other replicas of this one: %s", fault)
                    unheard = str(fault)
                await self._clock.sleep(_BEAT_SECONDS)
        finally:
            with suppress(ApiError, OSError):
                async with asyncio.timeout(_FAREWELL_SECONDS):
                    await self._write({_mark(address): None})

    async def beat(self) -> None:
        """Publishes a heartbeat; removes replicas without one for too long."""
        self._beat += 1
        said = Said(address=self._own, beat=self._beat)
        marks: dict[str, str | None] = {_mark(self._own): msgspec.json.encode(said).decode()}
        now = self._clock.monotonic()
        marks |= {
            mark: None
            for mark, (_, since) in self._heard.items()
            if now - since >= _GONE_SECONDS and mark not in marks
        }
        stored_marks = _marks(await self._write(marks))
        self._heard = {
            mark: before if (before := self._heard.get(mark)) and before[0] == text else (text, now)
            for mark, text in stored_marks.items()
        }

    async def _write(self, marks: dict[str, str | None]) -> JsonObject:
        body = {"metadata": {"annotations": marks}}
        patch = Patch(type="merge", body=body)
        try:
            stored, _ = await self._store.patch(
                LEASES, REPLICAS, patch, namespace=NAMESPACE, write=BY_HUB
            )
        except NotFound:
            await self._make()
            return await self._write(marks)
        return stored.object()

    async def _make(self) -> None:
        """Creates the Lease, unless another replica is faster."""
        body: JsonObject = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": REPLICAS, "namespace": NAMESPACE},
            "spec": {},
        }
        with suppress(AlreadyExists):
            await self._store.create(LEASES, body, namespace=NAMESPACE, write=BY_HUB)

    async def close(self) -> None:
        await end([*self._lines.values(), *self._running])
        closing = (line.close() for line in self._taken)
        await asyncio.gather(*closing, return_exceptions=True)


@asynccontextmanager
async def among_replicas(
    store: Store, place: ReplicaAddress, clock: Clock
) -> AsyncIterator[Replicas]:
    """Connects to the other replicas of a hub, for as long as the context lasts."""

    def make() -> ServingFiles:
        return certificates.replica(place.data, clock=clock)

    files = await with_shared_authority(store, place.data, make)
    tls = certificates.replica_context(files)
    replicas = Replicas(store, clock, files)
    server = HttpServer(replicas.answer, address=place.address, port=place.port, tls=tls)
    try:
        port = await server.start()
    except OSError as fault:
        where = f"{place.address}:{place.port}"
        raise Unavailable(f"--replica-port: replicas cannot meet at {where}: {fault}") from fault

    async def renew() -> None:
        while True:
            await clock.sleep(_RENEWAL_SECONDS)
            certificates.reload(tls, make())

    tasks = [asyncio.ensure_future(task) for task in (replicas.tell(place.url(port)), renew())]
    try:
        yield replicas
    finally:
        await end(tasks)
        await replicas.close()
        await server.close()


def _mark(address: str) -> str:
    """The annotation of a replica; an address is not a valid annotation name."""
    return _MARK + hashlib.sha256(address.encode()).hexdigest()[:16]


def _marks(lease: JsonObject) -> dict[str, str]:
    annotations = lease["metadata"].get("annotations") or {}
    return {key: text for key, text in annotations.items() if key.startswith(_MARK)}


def _read(text: str) -> Said | None:
    try:
        return msgspec.json.decode(text, type=Said)
    except msgspec.MsgspecError:
        return None
