"""What an agent remembers: nothing counts as accepted that is not on its disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairway.agent.memory import Memory
from fairway.api.meta import ObjectMeta, WorkloadReference
from fairway.api.work import Work, WorkSpec
from fairway.sealing import KeyFault, Keyring


def work(name: str, attempt: int = 1) -> Work:
    reference = WorkloadReference(namespace="default", name=name)
    spec = WorkSpec(cluster="here", workload=reference, attempt=attempt, term=7)
    return Work(metadata=ObjectMeta(name=name, namespace="fairway-cluster-here"), spec=spec)


class FullDisk(Memory):
    """A disk on which the next entry finds room for its first half only."""

    is_full = False

    def _write(self, lines: list[bytes]) -> None:
        if not self.is_full:
            super()._write(lines)
            return
        self.is_full, self._is_torn = False, True
        with self._path.open("ab") as file:
            file.write(lines[0][: len(lines[0]) // 2])
        raise OSError("no space left on device")


async def test_a_work_that_could_not_be_written_down_is_not_accepted(tmp_path: Path) -> None:
    memory = FullDisk(tmp_path)
    memory.open()
    await memory.keep(work("old"))
    memory.is_full = True
    with pytest.raises(OSError, match="no space"):
        await memory.keep(work("new"))
    memory.is_full = True
    with pytest.raises(OSError, match="no space"):
        await memory.keep(work("old", attempt=2))
    assert {name: kept.work.spec.attempt for name, kept in memory.works.items()} == {"old": 1}


async def test_half_an_entry_spoils_none_that_follows(tmp_path: Path) -> None:
    memory = FullDisk(tmp_path)
    memory.open()
    memory.is_full = True
    with pytest.raises(OSError, match="no space"):
        await memory.keep(work("one"))
    await memory.keep(work("one"))
    await memory.keep(work("two"))
    again = Memory(tmp_path)
    again.open()
    assert sorted(again.works) == ["one", "two"]
    assert again.term == 7


async def test_with_a_key_an_agent_remembers_as_before_and_leaves_nothing_in_clear(
    tmp_path: Path,
) -> None:
    memory = Memory(tmp_path)
    memory.open()
    await memory.keep(work("one"))
    sealed = Memory(tmp_path, keys=Keyring([b"o" * 32]))
    sealed.open()
    await sealed.keep(work("two"))
    log = tmp_path / "works.log"
    assert b"default" not in log.read_bytes()
    with pytest.raises(KeyFault, match="no key was given"):
        Memory(tmp_path).open()
    with pytest.raises(KeyFault, match="which was not given"):
        Memory(tmp_path, keys=Keyring([b"n" * 32])).open()
    again = Memory(tmp_path, keys=Keyring([b"o" * 32]))
    again.open()
    assert sorted(again.works) == ["one", "two"]
    # Half a line is ignored as before, wherever it ends.
    whole = log.read_bytes()
    for length in range(1, len(whole.splitlines()[-1])):
        log.write_bytes(whole + whole.splitlines()[-1][:length])
        torn = Memory(tmp_path, keys=Keyring([b"o" * 32]))
        torn.open()
        assert sorted(torn.works) == ["one", "two"]


async def test_an_agent_that_runs_gets_another_key(tmp_path: Path) -> None:
    ring = Keyring([b"o" * 32])
    memory = Memory(tmp_path, keys=ring)
    memory.open()
    await memory.keep(work("one"))
    ring.use([b"n" * 32])
    # One whose agent has only just been made has not read anything, and must not write that.
    await Memory(tmp_path, keys=ring).reseal()
    await memory.reseal()
    again = Memory(tmp_path, keys=Keyring([b"n" * 32]))
    again.open()
    assert sorted(again.works) == ["one"]
