"""What two laptops report of each other and of their runs: real nodes and links, stand-in trainers."""

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from app.cli.run_display import picture
from app.models.runs_model import Column, more, words
from app.words import device_names, run_words
from core.history.record import RunRecord
from core.run import recorder
from core.vocabulary import run_folder
from core.vocabulary.answers import Done, RunAccepted, RunEntry, RunList
from core.vocabulary.commands import ChangeSettings, ListRuns, StartRun, StopRun
from core.vocabulary.phases import Stopped, Training
from core.vocabulary.plan import RunSpec
from core.vocabulary.settings import SettingsChange
from tests.app.cli.scripted_node import Words
from tests.core.nodes import LIMIT_S, id_of, wait_for
from tests.core.run.lan import keep, project
from tests.core.test_two_nodes_run import Laptop, outcome, train, two, wait_free

pytestmark = pytest.mark.real

NAMES = ("Laptop-A", "Laptop-B von Ägidius")


@pytest.fixture
def spec(tmp_path: Path) -> RunSpec:
    return project(tmp_path / "somewhere" / "digits")


async def listed(laptop: Laptop) -> list[RunEntry]:
    answer = await laptop.node.submit(ListRuns())
    assert isinstance(answer, RunList)
    return list(answer.runs)


async def in_training(*laptops: Laptop) -> None:
    for laptop in laptops:
        await asyncio.wait_for(laptop.started.wait(), LIMIT_S)
        laptop.trainers[-1].meet()
        laptop.trainers[-1].make_step()
    for laptop in laptops:
        await wait_for(laptop.node, lambda s: s.run is not None and isinstance(s.run.phase, Training))


async def stopped_on(stopper: Laptop, *laptops: Laptop) -> None:
    assert await stopper.node.submit(StopRun()) == Done()
    for laptop in laptops:
        assert isinstance(await outcome(laptop), Stopped)
        laptop.started.clear()
    await wait_free(*laptops)


def said(laptop: Laptop) -> str:
    """This laptop's terminal output about the run, and its window's words for the outcome."""
    run = laptop.node.state.run
    assert run is not None
    screen = Words()
    screen.console.width = 200
    screen.console.print(picture(run, device_names.names_of(laptop.node.state, run.members), 1.0))
    return f"{run_words.phase_words(run.phase)}\n{screen.said}"


async def test_names_keep_their_capitals_on_the_other_laptop(tmp_path: Path, spec: RunSpec) -> None:
    async with two(tmp_path, NAMES) as (anna, ben):
        await train(anna, ben, spec)
        await stopped_on(ben, anna, ben)
        for laptop in (anna, ben):
            (entry,) = await listed(laptop)
            assert said(laptop).startswith(f"stopped on {NAMES[1]}\n")
            assert NAMES[0] in said(laptop) and NAMES[1] in said(laptop)
            assert more(entry, Column.STATE) == f"on {NAMES[1]}"
            assert more(entry, Column.STARTED) == ", ".join(NAMES)


async def test_a_renamed_laptop_is_called_so_on_the_other_one_without_a_restart(
    tmp_path: Path, spec: RunSpec
) -> None:
    async with two(tmp_path, NAMES) as (anna, ben):
        await train(anna, ben, spec)
        await stopped_on(ben, anna, ben)
        change = SettingsChange(name="Bens BÜRO")
        assert await ben.node.submit(ChangeSettings(change=change)) == Done()
        other = id_of(ben.node)
        await wait_for(anna.node, lambda s: s.devices[other].linked and s.devices[other].name == "Bens BÜRO")
        assert "Bens BÜRO" in said(anna), "the run that is on the screen, too"

        assert isinstance(await anna.node.submit(StartRun(spec=spec)), RunAccepted)
        await in_training(anna, ben)
        await stopped_on(ben, anna, ben)

        for laptop in (anna, ben):
            later, before = await listed(laptop)
            assert said(laptop).startswith("stopped on Bens BÜRO\n")
            assert (more(later, Column.STATE), more(before, Column.STATE)) == (
                "on Bens BÜRO",
                f"on {NAMES[1]}",
            )
            assert more(later, Column.STARTED) == f"{NAMES[0]}, Bens BÜRO"


class WithAnotherClock(RunRecord):
    """The second laptop's record, whose clock is two days ahead: too far to take the starter's time for
    its own."""

    def __init__(self, folder: Path, entry: RunEntry, *more: Any, **named: Any) -> None:
        if NAMES[1] in str(folder):
            entry = replace(entry, started_s=entry.started_s + 2 * 86_400)
        super().__init__(folder, entry, *more, **named)


async def test_both_list_a_run_under_one_time_and_a_resumed_one_names_it(
    tmp_path: Path, spec: RunSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder, "RunRecord", WithAnotherClock)
    async with two(tmp_path, NAMES) as (anna, ben):
        first = await train(anna, ben, spec)
        await stopped_on(anna, anna, ben)
        keep(anna.node.home.runs / first / run_folder.CHECKPOINTS, 40)
        assert isinstance(await anna.node.submit(StartRun(spec=replace(spec, resume=first))), RunAccepted)
        await in_training(anna, ben)
        await stopped_on(anna, anna, ben)
        here, there = await listed(anna), await listed(ben)

    (later, before), (later_there, before_there) = here, there
    assert [entry.run for entry in here] == [entry.run for entry in there]
    assert abs(before.started_s - before_there.started_s) > 86_400, "the clocks do differ"
    for one, other in ((before, before_there), (later, later_there)):
        assert words(one, Column.STARTED) == words(other, Column.STARTED)
    began = words(before, Column.STARTED)
    assert re.fullmatch(r"(today|yesterday) \d\d:\d\d", began)
    for entry in (later, later_there):
        day = r"resumed from \d{4}-\d\d-\d\d "
        assert re.search(f"{day}{began.split()[-1]}$", more(entry, Column.STATE))
