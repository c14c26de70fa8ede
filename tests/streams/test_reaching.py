"""Pods in a cluster that the hub cannot reach are reached by the stream that its agent opened."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from fairway.api.errors import BadRequest, Forbidden, NotFound, Unavailable
from fairway.client.asynchronous import WORKLOADS, AsyncClient
from fairway.client.errors import ConnectionFailed
from fairway.kubeapi import KubeApi, path_of
from fairway.server.questions import streams
from fairway.store.keys import CLUSTERS
from fairway.streams.requests import PROTOCOL
from tests.agent.local.machines import running, shared
from tests.streams.rigs import CLOCK, Rig, elsewhere, fairway, here, rig
from tests.streams.talking import run, told
from tests.waiting import seen


@pytest.fixture
async def edge(tmp_path: Path) -> AsyncIterator[Rig]:
    """A hub whose only usable cluster is elsewhere, with its agent."""
    async with rig(tmp_path, elsewhere("edge")) as found, found.agent("edge"):
        yield found


async def test_output_comes_back_as_it_is_asked_for(edge: Rig) -> None:
    await edge.start("train", "echo one; echo two; echo three", phase="Succeeded")
    assert await edge.log("train") == "one\ntwo\nthree\n"
    assert await edge.log("train", tailLines="1") == "three\n"
    assert await edge.log("train", pod="train-0", container="main") == "one\ntwo\nthree\n"
    with pytest.raises(NotFound, match="edge: the pod train-7 is not known"):
        await edge.log("train", pod="train-7")
    with pytest.raises(NotFound, match="has no container side"):
        await edge.log("train", container="side")


async def test_output_is_followed_to_its_end(edge: Rig) -> None:
    go = shared(edge.folder) / "go"
    script = f"echo begun; while [ ! -e {go} ]; do sleep 0.05; done; echo done"
    await edge.start("train", script)
    parts = edge.client.log("train", namespace="team", query={"follow": "true"})
    assert await anext(parts) == b"begun\n"
    go.touch()
    assert [part async for part in parts] == [b"done\n"]


async def test_much_output_comes_back_whole_however_slowly_it_is_read(edge: Rig) -> None:
    lines = 60_000
    await edge.start("loud", f"seq {lines}", phase="Succeeded")
    found = b""
    async for part in edge.client.log("loud", namespace="team"):
        found += part
        await asyncio.sleep(0)
    assert found.decode().split() == [str(index) for index in range(1, lines + 1)]


async def test_who_stops_reading_ends_what_the_agent_did_for_them(edge: Rig) -> None:
    await edge.start("train", "echo begun; sleep 60")
    parts = edge.client.log("train", namespace="team", query={"follow": "true"})
    assert await anext(parts) == b"begun\n"
    assert edge.lines["edge"].count == 1
    await parts.aclose()
    await edge.until(lambda: edge.lines["edge"].count == 0)


async def test_a_stream_that_is_cut_cuts_output_audibly_and_is_opened_again(edge: Rig) -> None:
    await edge.start("train", "echo begun; sleep 60")
    parts = edge.client.log("train", namespace="team", query={"follow": "true"})
    assert await anext(parts) == b"begun\n"
    before = edge.lines["edge"]
    await before.close()
    with pytest.raises(ConnectionFailed):
        await anext(parts)
    await edge.until(lambda: edge.lines.get("edge") not in (None, before))
    assert await edge.log("train") == "begun\n"


async def test_a_command_runs_beside_the_program_and_tells_how_it_ended(edge: Rig) -> None:
    await edge.start("train", "echo mine >note; sleep 60")
    heard = await run(edge.client, "train", "sh", "-c", "cat note; echo trouble >&2; exit 7")
    assert (heard.output, heard.exit_code) == ("mine\n", 7)
    assert heard.by_channel[2] == b"trouble\n"
    assert (await run(edge.client, "train", "true")).status["status"] == "Success"
    missing = await run(edge.client, "train", "no-such-program")
    assert missing.status["reason"] == "NotFound"
    assert "cannot run no-such-program" in missing.status["message"]


async def test_the_input_of_a_command_goes_there_whole_and_ends(edge: Rig) -> None:
    await edge.start("train", "sleep 60")
    given = bytes(range(256)) * 2_000
    heard = await run(edge.client, "train", "sh", "-c", "wc -c", given=given)
    assert heard.output.split() == [str(len(given))]


async def test_a_command_has_a_terminal_of_the_size_that_is_told(edge: Rig) -> None:
    await edge.start("train", "sleep 60")
    size = b"\x04" + json.dumps({"Width": 101, "Height": 33}).encode()
    script = "until [ $(stty size | cut -d' ' -f2) = 101 ]; do sleep 0.05; done; stty size"
    command = ("sh", "-c", script)
    heard = await told(edge.client, "exec", "train", size, command=command, tty="true")
    assert heard.output == "33 101\r\n"
    assert heard.exit_code == 0


async def test_a_command_ends_with_whoever_asked_for_it(edge: Rig) -> None:
    await edge.start("train", "sleep 60")
    mark = f"# {edge.folder}"
    query: dict[str, str | tuple[str, ...]] = {"command": ("sh", "-c", f"sleep 50; true {mark}")}
    async with edge.client.converse("train", "exec", namespace="team", query=query):
        await edge.until(lambda: bool(running(mark)))
    await edge.until(lambda: not running(mark))


async def _output(client: AsyncClient) -> bytes:
    return b"".join([part async for part in client.log("train", namespace="team")])


async def test_rights_are_those_of_whoever_asks(edge: Rig) -> None:
    await edge.start("train", "echo hello; sleep 60")
    viewer, editor, nobody = [await edge.somebody(*item) for item in (("view",), ("edit",), ())]
    try:
        await seen(lambda: _output(viewer), lambda text: text == b"hello\n", "its output")
        for client, what in ((viewer, "exec"), (viewer, "portforward"), (nobody, "exec")):
            with pytest.raises(Forbidden, match=f'cannot create resource "workloads/{what}"'):
                await told(client, what, "train", command="true", port="80")
        with pytest.raises(Forbidden, match='cannot get resource "workloads/log"'):
            await anext(nobody.log("train", namespace="team"))
        assert (await run(editor, "train", "true")).exit_code == 0
    finally:
        for item in (viewer, editor, nobody):
            await item.close()


async def test_who_loses_the_right_loses_the_stream(
    edge: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "_AGAIN_SECONDS", 0.05)
    await edge.start("train", "sleep 60")
    editor = await edge.somebody("edit")
    query: dict[str, str | tuple[str, ...]] = {"command": ("sleep", "50")}
    async with editor.converse("train", "exec", namespace="team", query=query) as socket:
        await edge.until(lambda: edge.lines["edge"].count == 1)
        await edge.client.delete("rolebindings", "somebody-edit-edit", namespace="team")
        assert await socket.receive() is None
    await edge.until(lambda: edge.lines["edge"].count == 0)
    await editor.close()


async def test_a_stolen_credential_serves_no_streams_of_another_cluster(edge: Rig) -> None:
    await edge.client.apply(elsewhere("other"))
    thief = KubeApi(await edge.credential("other"), CLOCK)
    before = edge.lines["edge"]
    path = path_of(CLUSTERS, "edge", subresource="stream")
    with pytest.raises(Forbidden, match='cannot create resource "clusters/stream"'):
        async with thief.websocket(path, protocols=(PROTOCOL,)):
            pass
    await thief.close()
    assert edge.lines["edge"] is before


async def test_an_agent_that_was_replaced_loses_its_stream(
    edge: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "_AGAIN_SECONDS", 0.05)
    await edge.client.apply(elsewhere("other"))
    access = await edge.credential("other")
    former = KubeApi(access, CLOCK)
    path = path_of(CLUSTERS, "other", subresource="stream")
    async with former.websocket(path, protocols=(PROTOCOL,)) as socket:
        await edge.until(lambda: "other" in edge.lines)
        await edge.client.delete(
            "serviceaccounts", "fairway-agent", namespace="fairway-cluster-other"
        )
        assert await socket.receive() is None
    await edge.until(lambda: "other" not in edge.lines)
    await former.close()


@pytest.mark.parametrize(
    ("cluster", "message"),
    [
        pytest.param(fairway("Cluster", "c", simulated={}), "by itself", id="of the hub's own"),
        pytest.param(
            fairway("Cluster", "c", kubernetes={"connection": "Pull"}, accepted=False),
            "not accepted",
            id="not accepted",
        ),
    ],
)
async def test_no_stream_is_taken_for_a_cluster_that_is(
    cluster: dict[str, object], message: str, edge: Rig
) -> None:
    await edge.client.apply(cluster)
    api = KubeApi(edge.access, CLOCK)
    path = path_of(CLUSTERS, "c", subresource="stream")
    request = api.websocket(path, protocols=(PROTOCOL,))
    with pytest.raises(Forbidden, match=message):
        async with request:
            pass
    await api.close()


async def test_a_cluster_whose_agent_has_not_called_is_said_to_be_so(edge: Rig) -> None:
    await edge.start("train", "echo hello", phase="Succeeded")
    with pytest.raises(Unavailable, match="no stream of the agent of other leads to a replica"):
        await edge.log("train", cluster="other")


async def test_what_is_asked_wrongly_is_refused_with_the_parameter(edge: Rig) -> None:
    await edge.start("train", "sleep 60")
    for what, query, message in (
        ("exec", {}, "command: required"),
        ("portforward", {"port": "0"}, "port: expected a number from 1 to 65535"),
        ("portforward", {"port": "http"}, "port: expected a number"),
    ):
        with pytest.raises(BadRequest, match=message):
            await told(edge.client, what, "train", **query)
    with pytest.raises(BadRequest, match="a WebSocket is needed here"):
        await edge.client.ask(WORKLOADS, "train", "exec", namespace="team", query={"command": "ls"})
    with pytest.raises(NotFound):
        await run(edge.client, "nobody", "true")


async def test_agents_inside_the_hub_are_asked_in_the_same_way(tmp_path: Path) -> None:
    async with rig(tmp_path, here()) as local:
        await local.start("train", "echo hello; sleep 60")
        assert await seen(lambda: local.log("train"), bool, "its output") == "hello\n"
        heard = await run(local.client, "train", "cat", given=b"to and fro")
        assert (heard.output, heard.exit_code) == ("to and fro", 0)
        heard = await told(local.client, "portforward", "train", port="80")
        assert heard.status["reason"] == "MethodNotAllowed"
        assert "share the ports of the hub's machine" in heard.status["message"]


async def test_a_simulated_cluster_says_plainly_what_it_cannot_do(tmp_path: Path) -> None:
    pool = {"name": "a", "count": 1, "shape": {"cpu": "8", "memory": "8Gi"}}
    cloud = fairway("Cluster", "cloud", simulated={"nodePools": [pool]})
    async with rig(tmp_path, cloud) as simulated:
        await simulated.start("train", "sleep 60")
        assert "started on" in await simulated.log("train")
        heard = await run(simulated.client, "train", "true")
        assert heard.status["message"] == (
            "cloud: pods of a simulated cluster run nothing, so no command runs in them"
        )
        heard = await told(simulated.client, "portforward", "train", port="80")
        assert "so they have no ports" in heard.status["message"]
