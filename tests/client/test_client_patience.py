"""What the client does when servers are busy, go away, or forget."""

from __future__ import annotations

import json
from contextlib import aclosing

import pytest
from scripted_server import drops, says, serving, streams

from fairway.api.errors import Expired, NotFound, TooManyRequests, Unavailable
from fairway.client import AsyncClient, ConnectionFailed, Event

POD = {"metadata": {"name": "a", "namespace": "default", "uid": "1", "resourceVersion": "5"}}


NEW = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}


class HastyClock:
    """Wakes sleepers at once, and notes how long they wanted to sleep."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    def now(self) -> float:
        return 1_800_000_000.0

    def monotonic(self) -> float:
        return self.now()

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


def line(kind: str, name: str, version: str, uid: str = "1") -> bytes:
    metadata = {"name": name, "namespace": "default", "uid": uid, "resourceVersion": version}
    return json.dumps({"type": kind, "object": {"metadata": metadata}}).encode() + b"\n"


def listing(version: str, *pods: dict[str, object]) -> dict[str, object]:
    return {"kind": "PodList", "metadata": {"resourceVersion": version}, "items": list(pods)}


def gone() -> dict[str, object]:
    return {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}


async def take(client: AsyncClient, count: int, **how: str) -> list[tuple[str, str]]:
    """The first events of a watch, as type and name."""
    found: list[Event] = []
    async with aclosing(client.watch("pods", **how)) as events:  # type: ignore[arg-type]
        async for event in events:
            found.append(event)
            if len(found) == count:
                break
    return [(event.type, event.object["metadata"].get("name", "")) for event in found]


async def test_a_busy_server_is_asked_again_after_the_time_it_names() -> None:
    clock = HastyClock()
    busy = says({}, status=429, Retry_After="3")
    async with (
        serving(busy, busy, says(POD)) as script,
        AsyncClient(script.access, clock=clock) as client,
    ):
        pod = await client.get("pods", "a")
    assert pod["metadata"]["name"] == "a"
    assert clock.slept == [3.0, 3.0]


async def test_a_watch_that_a_busy_server_refuses_is_opened_after_the_time_it_names() -> None:
    clock = HastyClock()
    refused = {"kind": "Status", "code": 429, "details": {"retryAfterSeconds": 7}}
    async with (
        serving(
            says(listing("5", POD)),
            says(refused, status=429, Retry_After="7"),
            streams(line("MODIFIED", "a", "6")),
        ) as script,
        AsyncClient(script.access, clock=clock) as client,
    ):
        events = await take(client, 3)
    assert events == [("ADDED", "a"), ("BOOKMARK", ""), ("MODIFIED", "a")]
    assert 7.0 in clock.slept


async def test_a_server_that_stays_busy_is_given_up() -> None:
    async with serving(*[says({}, status=429)] * 5) as script:
        async with AsyncClient(script.access, clock=HastyClock()) as client:
            with pytest.raises(TooManyRequests):
                await client.get("pods", "a")
        assert len(script.seen) == 5


async def test_a_write_is_not_repeated_when_it_may_have_been_done() -> None:
    async with serving(says({}, status=503), drops()) as script:
        async with AsyncClient(script.access, clock=HastyClock()) as client:
            with pytest.raises(Unavailable):
                await client.create(NEW)
            with pytest.raises(ConnectionFailed):
                await client.create(NEW)
        assert len(script.seen) == 2


async def test_a_read_is_repeated_after_a_broken_connection() -> None:
    async with (
        serving(drops(), says(POD)) as script,
        AsyncClient(script.access, clock=HastyClock()) as client,
    ):
        assert (await client.get("pods", "a"))["metadata"]["uid"] == "1"


async def test_an_answer_that_is_not_json_is_still_an_error_with_its_code() -> None:
    async with (
        serving(says("no such thing", status=404)) as script,
        AsyncClient(script.access) as client,
    ):
        with pytest.raises(NotFound):
            await client.get("pods", "a")


async def test_nobody_listening_says_which_server() -> None:
    async with serving() as script:
        access = script.access
    async with AsyncClient(access) as client:
        with pytest.raises(ConnectionFailed, match=access.server) as caught:
            await client.get("pods", "a")
    assert caught.value.is_refused


async def test_lines_of_a_watch_may_be_cut_anywhere() -> None:
    whole = line("ADDED", "a" * 200_000, "6") + line("MODIFIED", "b", "7")
    chunks = [whole[at : at + 70_001] for at in range(0, len(whole), 70_001)]
    async with serving(streams(*chunks)) as script, AsyncClient(script.access) as client:
        found = await take(client, 2, resource_version="5")
    assert found == [("ADDED", "a" * 200_000), ("MODIFIED", "b")]


async def test_a_watch_goes_on_from_the_last_version_it_saw() -> None:
    first = streams(line("ADDED", "a", "6"), line("BOOKMARK", "", "9"))
    async with serving(first, drops(), streams(line("ADDED", "b", "10"))) as script:
        async with AsyncClient(script.access, clock=HastyClock()) as client:
            found = await take(client, 3, resource_version="5")
        asked = [request.query["resourceVersion"] for request in script.seen]
    assert found == [("ADDED", "a"), ("BOOKMARK", ""), ("ADDED", "b")]
    assert asked == ["5", "9", "9"]


async def test_a_watch_from_a_version_says_when_it_is_forgotten() -> None:
    error = json.dumps({"type": "ERROR", "object": gone()}).encode() + b"\n"
    async with serving(streams(error)) as script, AsyncClient(script.access) as client:
        with pytest.raises(Expired, match="too old"):
            await take(client, 1, resource_version="5")


async def test_a_watch_from_the_start_lists_again_and_tells_the_difference() -> None:
    kept = {"metadata": {"name": "kept", "uid": "k", "resourceVersion": "1"}}
    changed = {"metadata": {"name": "changed", "uid": "c", "resourceVersion": "2"}}
    lost = {"metadata": {"name": "lost", "uid": "l", "resourceVersion": "3"}}
    later = {"metadata": {"name": "changed", "uid": "c", "resourceVersion": "8"}}
    made = {"metadata": {"name": "made", "uid": "m", "resourceVersion": "9"}}
    answers = [
        says(listing("5", kept, changed, lost)),
        says(gone(), status=410),
        says(listing("9", kept, later, made)),
        streams(line("DELETED", "made", "10", uid="m")),
    ]
    async with serving(*answers) as script, AsyncClient(script.access) as client:
        found = await take(client, 9)
    assert found == [
        ("ADDED", "kept"),
        ("ADDED", "changed"),
        ("ADDED", "lost"),
        ("BOOKMARK", ""),
        ("DELETED", "lost"),
        ("MODIFIED", "changed"),
        ("ADDED", "made"),
        ("BOOKMARK", ""),
        ("DELETED", "made"),
    ]


async def test_a_watch_outlives_a_server_that_is_away_while_it_lists_again() -> None:
    answers = [
        says(listing("5")),
        says(gone(), status=410),
        *[says({}, status=500)] * 3,
        says(listing("9", POD)),
    ]
    async with (
        serving(*answers) as script,
        AsyncClient(script.access, clock=HastyClock()) as client,
    ):
        found = await take(client, 3)
    assert found == [("BOOKMARK", ""), ("ADDED", "a"), ("BOOKMARK", "")]


async def test_a_broken_event_is_no_event() -> None:
    broken = streams(line("ADDED", "a", "6"), b'{"type": 3}\n')
    async with (
        serving(broken, streams(line("ADDED", "b", "7"))) as script,
        AsyncClient(script.access, clock=HastyClock()) as client,
    ):
        found = await take(client, 2, resource_version="5")
    assert found == [("ADDED", "a"), ("ADDED", "b")]


async def test_a_server_that_ends_watches_at_once_is_not_asked_in_a_tight_loop() -> None:
    clock = HastyClock()
    ended = streams()
    async with (
        serving(ended, ended, streams(line("ADDED", "a", "6"))) as script,
        AsyncClient(script.access, clock=clock) as client,
    ):
        await take(client, 1, resource_version="5")
    assert len(clock.slept) == 2
    assert all(seconds > 0.1 for seconds in clock.slept)
