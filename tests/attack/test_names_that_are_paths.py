"""A tenant names a pod or a container as a path, and wants a folder of somebody else."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.agent.local.machines import machine, pod
from tests.contracts.drivers import work

UP = "../" * 6


@pytest.mark.parametrize(
    "name", [f"{UP}escaped", "..", ".", "a/b", "/escaped", "a\nb", "a\0b", "a" * 300]
)
async def test_a_pod_with_a_path_for_a_name_is_refused(tmp_path: Path, name: str) -> None:
    async with machine(tmp_path) as rig:
        before = sorted(tmp_path.iterdir())
        one = work("one", pod(name, "true"))
        await rig.driver.apply(one)
        seen = (await rig.driver.observe()).works[one.metadata.name]
        assert "is not the name of a pod" in seen.faults[0]
        assert list(rig.folder.rglob("plan.json")) == []
        assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("name", [f"a/{UP}escaped", "a\nb", "a\0b"])
async def test_a_container_with_a_path_for_a_name_is_refused(tmp_path: Path, name: str) -> None:
    async with machine(tmp_path) as rig:
        one = work("one", pod("one", "true", container={"name": name}))
        await rig.driver.apply(one)
        seen = (await rig.driver.observe()).works[one.metadata.name]
        assert "is not the name of a container" in seen.faults[0]


async def test_a_placeholder_of_a_pod_with_a_path_for_a_name_is_not_made(tmp_path: Path) -> None:
    async with machine(tmp_path) as rig:
        await rig.driver.apply(work("one", pod(f"{UP}escaped", "true"), desired="Reserve"))
        assert list(rig.folder.rglob("plan.json")) == []
