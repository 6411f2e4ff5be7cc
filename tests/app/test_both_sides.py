"""What two laptops report of each other and of their runs: real nodes and links, stand-in trainers."""

import asyncio
from pathlib import Path

import pytest

from app.cli.run_display import picture
from app.models.runs_model import Column, more
from app.words import device_names, run_words
from core.vocabulary.answers import Done, RunAccepted, RunEntry, RunList
from core.vocabulary.commands import ChangeSettings, ListRuns, StartRun, StopRun
from core.vocabulary.phases import Stopped, Training
from core.vocabulary.plan import RunSpec
from core.vocabulary.settings import SettingsChange
from tests.app.cli.scripted_node import Words
from tests.core.nodes import LIMIT_S, id_of, wait_for
from tests.core.run.lan import project
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
