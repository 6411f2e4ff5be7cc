"""Two whole nodes share out the trials of a sweep: real links, consent and files; stand-in trainers."""

from __future__ import annotations

import asyncio
import contextlib
import csv
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from msgspec.structs import replace

from core.history.best import metric_of, ranked
from core.node.node import Node
from core.vocabulary import trainer_messages
from core.vocabulary.answers import Done, RunDetails, RunList, SweepAccepted
from core.vocabulary.commands import (
    AnswerConsent,
    DeleteReport,
    DeleteRun,
    GetRun,
    LabelRun,
    ListRuns,
    ResumeSweep,
    SendReport,
    StartSweep,
    StopRun,
)
from core.vocabulary.errors import REPORT_CAME
from core.vocabulary.ids import RunId
from core.vocabulary.phases import Exit, Finished
from core.vocabulary.progress import EpochEnd
from core.vocabulary.state import State
from core.vocabulary.sweep import Sweep, SweepSpec
from tests.core.nodes import Heard, id_of, linked, node, pair, refusal, wait_for
from tests.core.run.lan import FakeTrainer, project
from tests.core.run.world import FINISHED, failing

pytestmark = pytest.mark.real
RATES = ("0.1", "0.01", "0.001", "0.0001")
SETS = tuple(("--lr", rate) for rate in RATES)


@dataclass
class Laptop:
    """A node whose trainers train one epoch as soon as they start, unless they are ``held``. Their loss is
    the learning rate."""

    held: bool = False
    trainers: list[FakeTrainer] = field(default_factory=list)
    started: asyncio.Event = field(default_factory=asyncio.Event)
    node: Node = field(init=False)

    def make_trainer(self, train: trainer_messages.Train, **callbacks: object) -> FakeTrainer:
        trainer = FakeTrainer(train, **callbacks)  # type: ignore[arg-type]
        self.trainers.append(trainer)
        asyncio.get_running_loop().call_soon(self.go, trainer)
        return trainer

    def go(self, trainer: FakeTrainer) -> None:
        trainer.say(trainer_messages.Booted(seconds=1.0, devices=()))
        trainer.make_step()
        self.started.set()
        if not self.held:
            self.finish(trainer)

    def finish(self, trainer: FakeTrainer, end: Exit = FINISHED) -> None:
        loss = float(trainer.train.arguments[1])
        epoch = EpochEnd(at_s=1.0, epoch=0, epochs=1, step=9, logs={"loss": loss}, seconds=1.0)
        trainer.say(trainer_messages.EpochEnded(epoch=epoch))
        (trainer.work / "model.keras").write_bytes(trainer.train.arguments[1].encode())
        trainer.end(end)

    @property
    def rates(self) -> list[str]:
        return [trainer.train.arguments[1] for trainer in self.trainers]


@contextlib.asynccontextmanager
async def two(base: Path) -> AsyncIterator[tuple[Laptop, Laptop]]:
    anna, ben = Laptop(), Laptop()
    async with (
        node(base, "anna", discovery=False, make_trainer=anna.make_trainer) as anna.node,
        node(base, "ben", discovery=False, make_trainer=ben.make_trainer) as ben.node,
    ):
        await pair(anna.node, ben.node)
        yield anna, ben


def wanted(tmp_path: Path) -> SweepSpec:
    return SweepSpec(run=replace(project(tmp_path / "somewhere" / "digits"), seed=7), argument_sets=SETS)


def over(state: State) -> bool:
    return state.sweep is not None and not state.sweep.under_way


def sweep_of(laptop: Laptop) -> Sweep:
    assert laptop.node.state.sweep is not None
    return laptop.node.state.sweep


async def allow(laptop: Laptop, sets: tuple[tuple[str, ...], ...] = SETS) -> None:
    state = await wait_for(laptop.node, lambda s: bool(s.consents))
    assert state.consents[0].argument_sets == sets
    answer = AnswerConsent(run=state.consents[0].run, decision="once")
    assert await laptop.node.submit(answer) == Done()


async def test_trials_are_shared_out_after_one_question_and_the_best_is_found(tmp_path: Path) -> None:
    async with two(tmp_path) as (anna, ben):
        anna.held = True
        asked = Heard(ben.node)
        spec = replace(wanted(tmp_path), models=2)
        accepted = await anna.node.submit(StartSweep(spec=spec))
        assert isinstance(accepted, SweepAccepted), accepted
        await allow(ben)
        await wait_for(anna.node, lambda s: s.sweep is not None and sum(t.over for t in s.sweep.trials) == 3)
        for trial, ends in zip(sweep_of(anna).trials[:2], (0, 1), strict=True):
            assert trial.run is not None
            read = await anna.node.submit(GetRun(run=trial.run))
            assert isinstance(read, RunDetails), "also of another laptop's trial, and of one under way"
            assert sum(map(len, read.epochs.values())) == ends and sum(map(len, read.steps.values())) == 1
        anna.finish(anna.trainers[0])  # the slower laptop has taken one trial, the faster one the others
        await wait_for(anna.node, over)
        sweep = sweep_of(anna)
        assert (sweep.phase, [trial.status for trial in sweep.trials]) == ("finished", ["finished"] * 4)
        assert (anna.rates, ben.rates) == ([RATES[0]], list(RATES[1:]))
        assert asked.kinds().count("ConsentAsked") == 1
        assert (metric_of(sweep), [trial.arguments[1] for trial in ranked(sweep)]) == (
            "loss",
            list(reversed(RATES)),
        )
        assert {trainer.train.seed for trainer in (*anna.trainers, *ben.trainers)} == {7}
        assert all(trainer.train.tf_config == "" for trainer in ben.trainers), "each trains alone"
        runs = await anna.node.submit(ListRuns())
        assert isinstance(runs, RunList)
        assert {entry.sweep for entry in runs.runs} == {accepted.sweep}
        assert {entry.best["loss"].value for entry in runs.runs} == {float(rate) for rate in RATES}
        shown = SendReport(run=runs.runs[0].run, device=id_of(ben.node))
        assert await anna.node.submit(shown) == Done()
        told = await wait_for(ben.node, lambda s: any(each.code == REPORT_CAME for each in s.notices))
        assert Path(told.notices[-1].detail).parent == ben.node.home.received
        listed = await ben.node.submit(ListRuns())
        assert isinstance(listed, RunList)
        [report] = listed.reports
        assert (report.path, report.script) == (told.notices[-1].detail, "train.py")
        assert report.sender == ben.node.state.devices[id_of(anna.node)].shown_name
        assert await ben.node.submit(DeleteReport(path=report.path)) == Done()
        assert not Path(report.path).exists()
        await anna.node._sweeps._disk.do(lambda: None)
        kept = [Path(entry.folder, "outputs", "model.keras") for entry in runs.runs]
        assert sorted(path.read_text() for path in kept if path.exists()) == sorted(RATES[2:])
        assert [trial.model for trial in sweep.trials] == [False, False, True, True]
        source = tmp_path / "somewhere" / "digits"
        assert not (source / "model.keras").exists(), "a trial writes into its own copy"


async def test_unlisted_arguments_ask_again(tmp_path: Path) -> None:
    async with two(tmp_path) as (anna, ben):
        spec = replace(wanted(tmp_path), here=False)
        started = await anna.node.submit(StartSweep(spec=spec))
        assert isinstance(started, SweepAccepted)
        await allow(ben)
        await wait_for(anna.node, over)
        more = (("--lr", "0.5"),)
        again = await anna.node.submit(ResumeSweep(sweep=started.sweep, argument_sets=more))
        assert again == started
        await allow(ben, (*SETS, *more))
        state = await wait_for(anna.node, over)
        assert state.sweep is not None
        assert [trial.status for trial in state.sweep.trials] == ["finished"] * 5
        assert anna.trainers == [], "the starter takes no part"
        assert ben.rates == [*RATES, "0.5"]
        nothing = await anna.node.submit(ResumeSweep(sweep=started.sweep))
        assert refusal(nothing) == "sweep-complete"


async def test_a_lost_laptops_trial_begins_again_elsewhere_and_it_comes_back(tmp_path: Path) -> None:
    async with two(tmp_path) as (anna, ben):
        anna.held = ben.held = True
        assert isinstance(await anna.node.submit(StartSweep(spec=wanted(tmp_path))), SweepAccepted)
        await allow(ben)
        await asyncio.wait_for(ben.started.wait(), 60)
        await wait_for(anna.node, lambda s: s.sweep is not None and s.sweep.trials[1].run is not None)
        lost = sweep_of(anna).trials[1]
        assert lost.device == id_of(ben.node)
        ben.held = False
        ben.trainers[0].end(failing("killed"))
        anna.held = False
        anna.finish(anna.trainers[0])
        state = await wait_for(anna.node, over)
        assert state.sweep is not None
        assert [trial.status for trial in state.sweep.trials] == ["finished"] * 4
        assert [trial.begun for trial in state.sweep.trials] == [1, 2, 1, 1]
        answer = await anna.node.submit(GetRun(run=lost.run or ""))  # type: ignore[arg-type]
        assert isinstance(answer, RunDetails), "the interrupted run is in the history, too"


async def test_a_script_that_fails_fails_its_trial_alone(tmp_path: Path) -> None:
    async with two(tmp_path) as (anna, ben):
        anna.held = True
        spec = replace(wanted(tmp_path), run=replace(wanted(tmp_path).run, solo=True))
        assert isinstance(await anna.node.submit(StartSweep(spec=spec)), SweepAccepted)
        await asyncio.wait_for(anna.started.wait(), 60)
        anna.held = False
        anna.finish(anna.trainers[0], failing("script-error"))
        state = await wait_for(anna.node, over)
        assert state.sweep is not None
        assert [trial.status for trial in state.sweep.trials] == ["failed", *["finished"] * 3]
        assert ranked(state.sweep)[0].arguments[1] == RATES[-1]
        assert ben.trainers == []


async def test_stop_ends_all_trials_and_the_sweep_goes_on_after_its_starter_was_opened_again(
    tmp_path: Path,
) -> None:
    async with two(tmp_path) as (anna, ben):
        anna.held = ben.held = True
        assert isinstance(await anna.node.submit(StartSweep(spec=wanted(tmp_path))), SweepAccepted)
        await allow(ben)
        for laptop in (anna, ben):
            await asyncio.wait_for(laptop.started.wait(), 60)
        await wait_for(anna.node, lambda s: s.sweep is not None and all(t.run for t in s.sweep.trials[:2]))
        assert refusal(await anna.node.submit(StartSweep(spec=wanted(tmp_path)))) == "busy"
        assert await anna.node.submit(StopRun()) == Done()
        state = await wait_for(anna.node, over)
        assert state.sweep is not None
        assert state.sweep.phase == "stopped"
        assert [trial.status for trial in state.sweep.trials] == ["waiting"] * 4
        assert [laptop.trainers[0].forces for laptop in (anna, ben)] == [[0], [0]]
        # Again, and closed in the middle.
        for laptop in (anna, ben):
            laptop.started.clear()
        asked = Heard(ben.node)
        again = await anna.node.submit(ResumeSweep(sweep=state.sweep.sweep))
        assert isinstance(again, SweepAccepted), again
        for laptop in (anna, ben):
            await asyncio.wait_for(laptop.started.wait(), 60)
        anna.finish(anna.trainers[-1])
        await wait_for(anna.node, lambda s: s.sweep is not None and s.sweep.trials[0].over)
        await anna.node.stop()
        anna.held = ben.held = False
        async with node(
            tmp_path, "anna", discovery=False, make_trainer=anna.make_trainer, go_on=True
        ) as anna.node:
            await linked(anna.node, ben.node)
            state = await wait_for(anna.node, lambda s: s.sweep is not None and s.sweep.phase == "finished")
        assert state.sweep is not None
        assert state.sweep.sweep == again.sweep
        assert [trial.status for trial in state.sweep.trials] == ["finished"] * 4
        assert state.sweep.trials[0].begun == 1, "what was done stays done"
        assert "ConsentAsked" not in asked.kinds(), "the same sets were allowed before"


async def test_a_sweep_that_is_over_is_one_line_of_the_history_with_a_report_also_after_a_restart(
    tmp_path: Path,
) -> None:
    laptop = Laptop()
    async with node(tmp_path, "anna", discovery=False, make_trainer=laptop.make_trainer) as laptop.node:
        spec = replace(wanted(tmp_path), run=replace(wanted(tmp_path).run, solo=True))
        started = await laptop.node.submit(StartSweep(spec=spec))
        assert isinstance(started, SweepAccepted)
        await wait_for(laptop.node, over)
        await laptop.node._runs.history.reports_written()
    async with node(tmp_path, "anna", discovery=False) as again:
        found = await again.submit(ListRuns())
        assert isinstance(found, RunList)
        (entry,) = found.sweeps
        assert (entry.run, entry.trials, entry.arguments) == (RunId(started.sweep), 4, SETS[-1])
        assert (entry.phase, entry.best["loss"].value) == (Finished(), float(RATES[-1]))
        assert {run.sweep for run in found.runs} == {started.sweep}
        none = await again.submit(ListRuns(limit=0))
        assert isinstance(none, RunList)
        assert len(none.runs) == 4, "trials leave room for runs"

        assert await again.submit(LabelRun(run=entry.run, name="four <rates>")) == Done()
        await again._runs.history.reports_written()
        read = await again.submit(GetRun(run=RunId(entry.run[:-1])))
        assert isinstance(read, RunDetails) and read.sweep is not None
        assert [trial.status for trial in read.sweep.trials] == ["finished"] * 4
        page = Path(read.report).read_text()
        assert "four &lt;rates&gt;" in page and "best loss <b>0.0001</b> trial 4" in page
        assert [f"4: --lr {RATES[-1]}" in page, page.count("<td><code>--lr ")] == [True, 4]
        rows = list(csv.DictReader(Path(entry.folder, "history.csv").read_text().splitlines()))
        assert [row["best loss"] for row in rows] == ["0.1", "0.01", "0.001", "0.0001"]

        assert await again.submit(DeleteRun(run=entry.run)) == Done()
        assert await again.submit(ListRuns()) == RunList(runs=())
        assert not Path(entry.folder).exists()
        assert refusal(await again.submit(GetRun(run=entry.run))) == "run-unknown"
