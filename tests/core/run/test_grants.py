"""A script that asks for another laptop's files: from the starter's request to the walls around its
trainer."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from core.vocabulary import events as ev
from core.vocabulary.access import Access, Grant
from core.vocabulary.errors import TandemError
from core.walls.levels import Level
from tests.core.run.lan import Lan, project
from tests.core.run.test_runs import both, wait_over

PICTURES = Access(path="~/Pictures")


async def test_what_a_user_allowed_is_open_to_the_trainer(
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


async def test_who_takes_no_part_is_asked_for_nothing(tmp_path: Path) -> None:
    async with Lan(tmp_path, ("Anna", "Ben"), level=Level(7, True)) as lan:
        anna, ben = both(lan)
        spec = replace(project(tmp_path / "thesis"), solo=True, opens={ben.device: (PICTURES,)})
        with pytest.raises(TandemError) as refused:
            await anna.runs.start(spec)
        assert refused.value.code == "asks-nobody"
