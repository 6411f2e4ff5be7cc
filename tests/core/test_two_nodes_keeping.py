"""Two whole nodes: what a run left on the other laptop is seen on both, and removed over the link."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from core.vocabulary import run_folder
from core.vocabulary.answers import KeptList, RunList
from core.vocabulary.commands import ListKept, ListRuns, RemoveKept
from tests.core.nodes import LIMIT_S, id_of, refusal, wait_for
from tests.core.run.lan import project
from tests.core.test_two_nodes_run import begin, outcome, two

pytestmark = pytest.mark.real


async def test_my_project_is_removed_from_bens_laptop_once_the_run_is_over(tmp_path: Path) -> None:
    spec = project(tmp_path / "somewhere" / "digits")
    async with two(tmp_path) as (anna, ben):
        run = await begin(anna, ben, spec)
        for laptop in (anna, ben):
            await asyncio.wait_for(laptop.started.wait(), LIMIT_S)
        remove = RemoveKept(device=id_of(ben.node), where="there")
        assert refusal(await anna.node.submit(remove)) == "kept-in-use"
        for laptop in (anna, ben):
            laptop.trainers[-1].end()
        for laptop in (anna, ben):
            await outcome(laptop)
        await wait_for(ben.node, lambda s: not s.busy)

        folder = ben.node.home.runs / run
        (folder / run_folder.LOGS).mkdir(exist_ok=True)
        (folder / run_folder.LOGS / "left.log").write_text("of anna's script")
        async with asyncio.timeout(LIMIT_S):  # the report is written after the run
            while not (folder / run_folder.REPORT).exists():  # noqa: ASYNC110  (no event tells of it)
                await asyncio.sleep(0.02)
        told = await anna.node.submit(ListKept(device=id_of(ben.node)))
        mine = await ben.node.submit(ListKept(device=id_of(anna.node)))
        assert isinstance(told, KeptList) and told.there is not None and told.problem is None
        assert isinstance(mine, KeptList) and mine.there == told.here
        assert (mine.here.projects, mine.here.bytes) == (told.there.projects, told.there.bytes)
        (kept,) = told.there.projects
        assert kept.script == "train.py" and kept.files == 2
        assert [each.run for each in told.there.runs] == [run] and told.there.bytes > 0
        assert (ben.node.home.projects / kept.project).is_dir()

        after = await anna.node.submit(remove)
        assert isinstance(after, KeptList) and after.there is not None
        assert (after.there.projects, after.there.runs, after.there.bytes) == ((), (), 0)
        assert not (ben.node.home.projects / kept.project).exists()
        assert not (folder / run_folder.LOGS).exists() and (folder / run_folder.PLAN).exists()
        (notice,) = [each for each in ben.node.state.notices if each.code == "kept-removed"]
        assert "anna" in notice.what
        runs = await ben.node.submit(ListRuns())
        assert isinstance(runs, RunList) and [entry.run for entry in runs.runs] == [run]
