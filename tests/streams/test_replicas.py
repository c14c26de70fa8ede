"""Replicas of a hub ask each other: whichever is asked, the one that an agent called answers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest

from fairway.agent.fleet import Agents
from fairway.api.errors import ApiError, Forbidden, NotFound, Unavailable
from fairway.api.names import REPLICAS
from fairway.app import open_store, prepare_store
from fairway.client.access import Access
from fairway.clock import SystemClock, VirtualClock
from fairway.controllers.cache import Cache
from fairway.hub.agent_lines import Reaching
from fairway.hub.on_kubernetes import NAMESPACE
from fairway.hub.replicas import ReplicaAddress, Replicas, Said, among_replicas
from fairway.kubeapi import KubeApi
from fairway.loops import end
from fairway.server.access import certificates
from fairway.server.questions.parameters import LogRequest
from fairway.server.questions.streams import CommandRequest
from fairway.store.interface import BY_HUB, Patch, Store
from fairway.store.keys import LEASES
from fairway.streams import memory
from fairway.streams.line import Line, Serve, Talk
from fairway.streams.requests import Ask, Channel, Outcome
from tests.waiting import seen

CLOCK = SystemClock()
LOG = LogRequest(namespace="team", name="train", cluster="edge", user="ada", groups=("team",))
COMMAND = CommandRequest(
    namespace="team", name="train", cluster="edge", user="ada", command=("cat",), has_input=True
)


@dataclass(frozen=True, kw_only=True)
class Replica:
    """One of several over the same store."""

    folder: Path
    reaching: Reaching
    replicas: Replicas

    @asynccontextmanager
    async def called_by(self, cluster: str, serve: Serve) -> AsyncIterator[None]:
        """An agent has called it, and answers so."""
        ours, theirs = memory.pair()
        tasks = [
            asyncio.ensure_future(self.reaching.take(cluster, ours)),
            asyncio.ensure_future(Line(theirs, CLOCK, serve=serve).run()),
        ]
        while cluster not in self.reaching._called:
            await asyncio.sleep(0)
        try:
            yield
        finally:
            await end(tasks)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    opened = open_store(tmp_path, clock=CLOCK)
    await prepare_store(opened)
    yield opened
    await opened.close()


async def marks(store: Store) -> list[Said]:
    """What replicas say of themselves."""
    try:
        lease = (await store.get(LEASES, REPLICAS, NAMESPACE)).object()
    except NotFound:
        return []
    annotations = (lease["metadata"].get("annotations") or {}).items()
    texts = [text for key, text in annotations if key.startswith("replica.fairway.dev/")]
    said = (msgspec.json.decode(text, type=Said) for text in texts)
    return sorted(said, key=lambda item: item.address)


@asynccontextmanager
async def several(
    store: Store, folder: Path, count: int, *, besides: int = 0
) -> AsyncIterator[list[Replica]]:
    """Replicas that have said where they are, beside some who are said to be somewhere."""
    async with AsyncExitStack() as stack:
        found = []
        for number in range(count):
            own = folder / f"replica-{number}"
            own.mkdir()
            replicas = await stack.enter_async_context(
                among_replicas(store, ReplicaAddress(data=own), CLOCK)
            )
            agents = Agents(store, lambda *_: None, clock=CLOCK)
            cache = Cache(store, clock=CLOCK)
            reaching = Reaching(agents, cache, CLOCK, replicas=replicas)
            stack.push_async_callback(reaching.close)
            found.append(Replica(folder=own, reaching=reaching, replicas=replicas))
        await seen(lambda: marks(store), lambda said: len(said) == count + besides, "all")
        yield found


async def tells_who_asked(ask: Ask, talk: Talk) -> Outcome:
    await talk.begin()
    said = f"{ask.kind} of {ask.work} for {ask.user} of {','.join(ask.groups)}"
    await talk.send(Channel.OUTPUT, f"{said}; of {ask.cluster or 'no'} cluster by name".encode())
    return Outcome()


async def echoes(ask: Ask, talk: Talk) -> Outcome:
    """Answers as `cat` would, and ends as it was told to."""
    await talk.begin()
    while received := await talk.receive():
        if not received[1]:
            return Outcome(exit_code=7)
        await talk.send(Channel.OUTPUT, received[1])
    return Outcome()


async def output_of(replica: Replica) -> str:
    return b"".join([part async for part in await replica.reaching.log(LOG)]).decode()


async def test_every_replica_answers_by_the_one_that_the_agent_called(
    store: Store, tmp_path: Path
) -> None:
    async with several(store, tmp_path, 3) as found:
        told = "log of team.train for ada of team; of no cluster by name"
        for called in found:
            async with called.called_by("edge", tells_who_asked):
                assert [await output_of(item) for item in found] == [told] * 3


async def test_both_directions_and_the_end_of_a_command_pass_through_another(
    store: Store, tmp_path: Path
) -> None:
    given = bytes(range(256)) * 4_000
    async with several(store, tmp_path, 2) as (near, far), far.called_by("edge", echoes):
        talk = await near.reaching.open(COMMAND)
        sending = asyncio.ensure_future(_said(talk, given))
        heard = b""
        while received := await talk.receive():
            heard += received[1]
        await sending
        assert heard == given
        assert talk.outcome == Outcome(exit_code=7)


async def _said(talk: Talk, content: bytes) -> None:
    await talk.send(Channel.INPUT, content)
    await talk.end(Channel.INPUT)


async def test_who_goes_ends_what_was_done_for_them_behind_another_replica(
    store: Store, tmp_path: Path
) -> None:
    ended = asyncio.Event()

    async def endless(_: Ask, talk: Talk) -> Outcome:
        try:
            await talk.begin()
            await asyncio.Event().wait()
        finally:
            ended.set()
        return Outcome()

    async with several(store, tmp_path, 2) as (near, far), far.called_by("edge", endless):
        talk = await near.reaching.open(COMMAND)
        assert not ended.is_set()
        await talk.close()
        async with asyncio.timeout(30):
            await ended.wait()


async def test_a_refusal_of_the_agent_is_told_as_it_was(store: Store, tmp_path: Path) -> None:
    async def refuses(_: Ask, talk: Talk) -> Outcome:
        return Outcome(reason="Forbidden", message="the tenant may not")

    async with several(store, tmp_path, 2) as (near, far), far.called_by("edge", refuses):
        with pytest.raises(Forbidden, match="edge: the tenant may not"):
            await near.reaching.open(COMMAND)


async def test_an_agent_that_called_nobody_is_said_to_be_so_and_nobody_is_asked_in_a_circle(
    store: Store, tmp_path: Path
) -> None:
    async with several(store, tmp_path, 3) as found:
        for item in found:
            with pytest.raises(Unavailable, match="no stream of the agent of edge leads to"):
                await item.reaching.log(LOG)


async def test_a_replica_that_died_stands_in_nobodys_way(store: Store, tmp_path: Path) -> None:
    # Two left their addresses; where nobody listens, and where there is no such name.
    annotations = {
        f"replica.fairway.dev/dead-{number}": msgspec.json.encode(Said(address=address)).decode()
        for number, address in enumerate(("127.0.0.1:1", "nowhere.invalid:1"))
    }
    body = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": REPLICAS, "namespace": NAMESPACE, "annotations": annotations},
        "spec": {},
    }
    await store.create(LEASES, body, namespace=NAMESPACE, write=BY_HUB)
    several_of_four = several(store, tmp_path, 2, besides=2)
    async with several_of_four as (near, far), far.called_by("edge", tells_who_asked):
        assert (await output_of(near)).startswith("log of team.train for ada")


async def test_whoever_gives_no_sign_of_life_is_taken_off_the_list(
    store: Store, tmp_path: Path
) -> None:
    clock = VirtualClock()
    files = certificates.replica(tmp_path, clock=CLOCK)
    one, other = (Replicas(store, clock, files) for _ in range(2))
    running = [
        asyncio.ensure_future(replica.tell(address))
        for replica, address in ((one, "one:1"), (other, "other:1"))
    ]
    await seen(lambda: marks(store), lambda said: len(said) == 2, "both")
    # One is killed and says nothing; the other goes on for a while.
    patch = Patch(
        type="merge",
        body={
            "metadata": {
                "annotations": {"replica.fairway.dev/killed": '{"address":"killed:1","beat":3}'}
            }
        },
    )
    await store.patch(LEASES, REPLICAS, patch, namespace=NAMESPACE, write=BY_HUB)

    async def later() -> list[str]:
        await clock.advance(30.0)
        return [said.address for said in await marks(store)]

    await seen(later, lambda said: said == ["one:1", "other:1"], "the dead one to be forgotten")
    await end(running)
    assert await marks(store) == []


@pytest.mark.parametrize("shown", ["nothing", "a serving certificate", "one of a stranger"])
async def test_who_is_no_replica_is_not_let_in(store: Store, tmp_path: Path, shown: str) -> None:
    async with several(store, tmp_path, 1) as (replica,):
        (said,) = await marks(store)
        own = certificates.replica(replica.folder, clock=CLOCK)
        files = {
            "nothing": None,
            # Signed by the same authority, for those who connect to the hub.
            "a serving certificate": certificates.generate_certificate(
                replica.folder, (), clock=CLOCK
            ),
            "one of a stranger": certificates.replica(tmp_path / "stranger", clock=CLOCK),
        }[shown]
        access = Access(
            server=f"https://{said.address}",
            authority=own.authority or b"",
            tls_server_name=certificates.REPLICA,
            certificate=files.certificate.read_bytes() if files else b"",
            key=files.key.read_bytes() if files else b"",
        )
        api = KubeApi(access, CLOCK)
        try:
            with pytest.raises((ApiError, OSError)):
                async with api.websocket("/replicas/stream", protocols=("v1.replica.fairway.dev",)):
                    pass
            with pytest.raises((ApiError, OSError)):
                await api.answers(5.0)
        finally:
            await api.close()


async def test_an_address_that_somebody_else_wrote_down_is_not_believed(
    store: Store, tmp_path: Path
) -> None:
    """Whoever can write the list gets no questions: they have no certificate of the authority."""
    asked = []

    async def spies(ask: Ask, talk: Talk) -> Outcome:
        asked.append(ask)
        return Outcome()

    async with several(store, tmp_path, 1) as (replica,):
        (tmp_path / "elsewhere").mkdir()
        other = open_store(tmp_path / "elsewhere")
        await prepare_store(other)
        place = ReplicaAddress(data=tmp_path / "elsewhere")
        async with among_replicas(other, place, CLOCK) as stranger:
            stranger.serve = spies
            (theirs,) = await seen(lambda: marks(other), bool, "the stranger")
            text = msgspec.json.encode(theirs).decode()
            body = {"metadata": {"annotations": {"replica.fairway.dev/stranger": text}}}
            merge = Patch(type="merge", body=body)
            await store.patch(LEASES, REPLICAS, merge, namespace=NAMESPACE, write=BY_HUB)
            with pytest.raises(Unavailable):
                await replica.reaching.log(LOG)
        await other.close()
    assert asked == []


async def test_what_all_other_replicas_remember_is_told_by_any_of_them(
    store: Store, tmp_path: Path
) -> None:
    async def led(ask: Ask) -> bytes:
        return f"{ask.most} of {ask.work}".encode() * 100_000

    async def never_led(ask: Ask) -> bytes:
        return b"[]"

    ask = Ask(kind="decisions", work="team/train", most=5)
    async with several(store, tmp_path, 3) as (first, second, third):
        # The first is starting, and remembers nothing yet.
        for value, memory_of in ((first, None), (second, never_led), (third, led)):
            value.reaching.memory = memory_of
        much = b"5 of team/train" * 100_000
        assert sorted(await first.reaching.ask_replicas(ask)) == [much, b"[]"]
        assert await third.reaching.ask_replicas(ask) == [b"[]"]
