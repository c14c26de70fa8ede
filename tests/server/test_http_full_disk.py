"""A hub whose disk is full, as its clients see it."""

from __future__ import annotations

from pathlib import Path

from hub_calls import Caller, calling, config_map

from fairway.app import HubOptions, open_hub
from fairway.store.embedded.store import EmbeddedStore

PATH = "/api/v1/namespaces/default/configmaps"

FULL = "it is full; what was written before can be read, and nothing can be written"


def limit(store: EmbeddedStore, pages: int) -> None:
    """Lets the hub's data grow no further, as a full disk would."""
    store._journal._connection.execute(f"PRAGMA max_page_count={pages}")


async def fill(call: Caller) -> tuple[int, dict]:
    """Writes until it is refused; how much was taken, and the refusal."""
    for number in range(1_000):
        answer = await call("POST", PATH, config_map(f"one-{number}", text="x" * 20_000))
        if answer.status != 201:
            return number, {"status": answer.status, **answer.json}
    raise AssertionError("the disk is never full")


async def test_a_full_disk_is_told_to_who_writes_and_who_asks_and_ends_by_itself(
    tmp_path: Path,
) -> None:
    options = HubOptions(data=tmp_path, port=0, has_controllers=False)
    async with open_hub(options) as hub, calling(hub.kubeconfig) as call:
        assert isinstance(hub.store, EmbeddedStore)
        limit(hub.store, 200)
        taken, refused = await fill(call)
        assert taken
        assert (refused["code"], refused["reason"]) == (507, "InsufficientStorage")
        assert refused["message"].startswith(f"the disk with {tmp_path} is full: nothing can be")
        ready = await call("GET", "/readyz")
        assert (ready.status, ready.body.decode().splitlines()) == (
            503,
            [
                "[+]store ok",
                f"[-]disk failed: {FULL}",
                "readyz check failed",
            ],
        )
        assert (await call("GET", "/livez")).status == 200
        assert len((await call("GET", PATH)).json["items"]) >= taken
        limit(hub.store, 1_000_000)
        assert (await call("POST", PATH, config_map("after"))).status == 201
        assert (await call("GET", "/readyz")).body == b"ok"
