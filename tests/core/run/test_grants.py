"""A script that asks for another laptop's files: from the starter's request to the walls around its
trainer."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from core.run.context import RunLimits
from core.vocabulary import events as ev
from core.vocabulary import run_folder
from core.vocabulary.access import Access, Grant
from core.vocabulary.errors import TandemError
from core.vocabulary.phases import Failed
from core.vocabulary.trainer_messages import Kept
from core.walls.levels import Level
from tests.core.run.lan import LOST, Lan, keep, project
from tests.core.run.test_returns import finish, nodes, run_of, to_training
from tests.core.run.test_runs import both, wait_over

PICTURES = Access(path="~/Pictures")


async def test_folders_that_a_user_allowed_are_open_to_the_trainer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path.resolve() / "home"
    (home / "Pictures").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    async with Lan(tmp_path, ("Anna", "Ben"), level=Level(7, True)) as lan:
        anna, ben = both(lan)
        ben.ask_before_running(anna)
        await anna.runs.start(replace(project(tmp_path / "thesis"), opens={ben.device: (PICTURES,)}))
        await lan.wait_until(lambda: ben.state.consents)
        (asked,) = (event for event in ben.events if isinstance(event, ev.ConsentAsked))
        assert asked.opened == (Grant(asked="~/Pictures", path=str(home / "Pictures")),)
        await ben.runs.answer_consent(asked.run, "once")
        await lan.wait_until(lambda: anna.runs_a_trainer and ben.runs_a_trainer)
        walls = ben.trainers[-1].train.walls
        assert walls is not None and walls.opened == asked.opened
        for node in (anna, ben):
            node.trainers[-1].end()
        await wait_over(lan)


async def test_a_laptop_that_takes_no_part_is_asked_for_nothing(tmp_path: Path) -> None:
    async with Lan(tmp_path, ("Anna", "Ben"), level=Level(7, True)) as lan:
        anna, ben = both(lan)
        spec = replace(project(tmp_path / "thesis"), solo=True, opens={ben.device: (PICTURES,)})
        with pytest.raises(TandemError) as refused:
            await anna.runs.start(spec)
        assert refused.value.code == "asks-nobody"


@pytest.mark.parametrize("became_a_link", [True, False])
async def test_invariant_a_stand_in_opens_no_folder_that_became_a_link_since_the_yes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, became_a_link: bool
) -> None:
    """A script that may change a folder replaces one in it by a link, and its starter leaves."""
    home = tmp_path.resolve() / "home"
    (home / "data" / "photos").mkdir(parents=True)
    (home / "Documents").mkdir()
    monkeypatch.setenv("HOME", str(home))
    asks = (Access(path="~/data", write=True), Access(path="~/data/photos"))
    limits = RunLimits(look_s=0.05, idle_s=0.3)
    async with Lan(tmp_path, ("Anna", "Ben", "Cleo"), limits, Level(7, True), tells_busy=True) as lan:
        anna, ben, cleo = nodes(lan)
        for node in (ben, cleo):
            node.ask_before_running(anna)
        cleo.ask_before_running(ben)
        spec = replace(project(tmp_path / "thesis"), opens={ben.device: asks, cleo.device: asks})
        run = await anna.runs.start(replace(spec, devices=(ben.device, cleo.device)))
        await lan.wait_until(lambda: ben.state.consents and cleo.state.consents)
        for node in (ben, cleo):
            await node.runs.answer_consent(run, "once")
        await to_training(lan, anna, ben, cleo)
        for node in (ben, cleo):
            keep(node.home.runs / run / run_folder.CHECKPOINTS, 40)
            node.trainers[-1].say(Kept())
        if became_a_link:
            (home / "data" / "photos").rmdir()
            (home / "data" / "photos").symlink_to(home / "Documents")
        lan.lose(anna, cleo, LOST)
        lan.lose(anna, ben, LOST)
        if became_a_link:
            await lan.wait_until(lambda: run_of(ben) != run and ben.over)
            assert isinstance(ben.phase, Failed) and ben.phase.problem.code == "reaches-more"
            assert len(ben.trainers) == len(cleo.trainers) == 1
        else:
            await lan.wait_until(lambda: run_of(ben) != run)
            await to_training(lan, ben, cleo)
            paths = str(home / "data"), str(home / "data" / "photos")
            for node in (ben, cleo):
                walls = node.trainers[-1].train.walls
                assert walls is not None and tuple(each.path for each in walls.opened) == paths
            await finish(lan, ben, cleo)
        await finish(lan, anna)
