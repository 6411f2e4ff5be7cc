"""``tandem sweep``: what it asks the node for, what it says, and how it ends."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import structs

from app.cli import command_line
from app.cli.exit_codes import ExitCode
from app.cli.interrupts import Interrupts
from app.cli.sweep import sweep_on
from core.vocabulary import events as ev
from core.vocabulary.answers import SweepAccepted
from core.vocabulary.commands import ResumeSweep, StartSweep, StopSweep
from core.vocabulary.errors import Problem, TandemError
from core.vocabulary.ids import ProjectId, RunId, SweepId
from core.vocabulary.plan import RunSpec
from core.vocabulary.progress import Best
from core.vocabulary.sweep import Sweep, SweepSpec, Trial
from tests.app.cli.scripted_node import OTHER, ScriptedNode, Words, follower, paired

SWEEP = SweepId("20261121-191204-9f3a01bc")
SETS = (("--lr", "0.1"), ("--lr", "0.01"))
SPEC = SweepSpec(run=RunSpec(script="train.py"), argument_sets=SETS)
TRIALS = tuple(Trial(number=at + 1, arguments=each, seed=7) for at, each in enumerate(SETS))
BEGUN = Sweep(sweep=SWEEP, spec=SPEC, script="train.py", project=ProjectId("c" * 64), trials=TRIALS)


def finished(number: int, loss: float) -> Trial:
    trial = TRIALS[number - 1]
    best = {"loss": Best(value=loss, epoch=0)}
    return structs.replace(
        trial, status="finished", begun=1, laptop="ben", run=RunId(f"run{number}"), epochs=1, best=best
    )


FAILED = structs.replace(
    TRIALS[0], status="failed", begun=1, laptop="ben", problem=Problem(code="x", what="It raised.")
)


def swept(*events: ev.Event) -> ScriptedNode:
    """A node whose sweep has these events as soon as it is started or resumed."""
    node = ScriptedNode()
    node.happen(paired())
    for command in (StartSweep, ResumeSweep):
        node.answers[command] = SweepAccepted(sweep=SWEEP)
        node.then[command] = [ev.SweepChanged(sweep=BEGUN), *events]
    return node


def changed(*trials: Trial) -> list[ev.Event]:
    return [ev.TrialChanged(sweep=SWEEP, trial=trial) for trial in trials]


def over(phase: str, *trials: Trial, problem: Problem | None = None) -> ev.Event:
    sweep = BEGUN
    for trial in trials:
        sweep = sweep.having(trial)
    return ev.SweepChanged(sweep=structs.replace(sweep, phase=phase, problem=problem))


async def run(node: ScriptedNode, screen: Words, *argv: str, pressed: int = 0) -> int:
    interrupts = Interrupts()
    for _ in range(pressed):
        interrupts.interrupt()
    with follower(node) as events:
        return await sweep_on(command_line.read(["sweep", *argv]), events, screen, interrupts)


async def test_every_combination_is_asked_for_and_the_best_is_named() -> None:
    results = finished(1, 0.5), finished(2, 0.25)
    running = structs.replace(TRIALS[0], status="running", begun=1, laptop="ben")
    node, screen = swept(*changed(running, *results), over("finished", *results)), Words()
    name = node.state.devices[OTHER].shown_name
    argv = ("train.py", "--with", name, "--not-here", "--repeat", "2", "--models", "all", "--seed", "7")
    assert await run(node, screen, *argv, "--", "--lr", "0.1,0.01") == ExitCode.OK
    [wanted] = [each for each in node.commands if isinstance(each, StartSweep)]
    spec = wanted.spec
    assert (spec.argument_sets, spec.here, spec.repeat, spec.models) == (SETS, False, 2, None)
    assert (spec.run.script, spec.run.devices) == (str(Path("train.py").absolute()), (OTHER,))
    assert spec.run.seed == 7
    assert "Trial 1 of 2 (--lr 0.1) begins on ben." in screen.said
    assert "Trial 2 of 2 (--lr 0.01) finished on ben: loss 0.25." in screen.said
    assert "Finished: 2 of 2 trials have a result." in screen.said
    assert "Best: trial 2 (--lr 0.01), loss 0.25. Its run: run2" in screen.said


async def test_some_combinations_are_drawn_at_random() -> None:
    node, screen = swept(over("finished", finished(1, 0.5), finished(2, 0.25))), Words()
    argv = ("train.py", "--random", "5", "--", "--lr", "0.1,0.01,0.001", "--layers", "1,2,3")
    assert await run(node, screen, *argv) == ExitCode.OK
    [wanted] = [each for each in node.commands if isinstance(each, StartSweep)]
    sets = wanted.spec.argument_sets
    assert len(set(sets)) == 5
    assert {words[::2] for words in sets} == {("--lr", "--layers")}


async def test_json_has_the_trials_and_a_failed_one_is_no_success() -> None:
    results = FAILED, finished(2, 0.25)
    node, screen = swept(*changed(*results), over("finished", *results)), Words(json=True)
    assert await run(node, screen, "train.py", "--", "--lr", "0.1,0.01") == ExitCode.FAILED
    [told] = screen.told
    assert (told["ok"], told["phase"], told["metric"], told["best"]) == (False, "finished", "loss", 2)
    assert [trial["status"] for trial in told["trials"]] == ["failed", "finished"]


@pytest.mark.parametrize(
    ("phase", "code", "pressed", "wanted"),
    [
        ("failed", "consent-refused", 0, ExitCode.REFUSED),
        ("failed", "stopped", 0, ExitCode.STOPPED),
        ("failed", "device-away", 0, ExitCode.FAILED),
        ("stopped", "", 0, ExitCode.STOPPED),
        ("stopped", "", 1, ExitCode.INTERRUPTED),
    ],
)
async def test_each_end_has_its_exit_code(phase: str, code: str, pressed: int, wanted: ExitCode) -> None:
    problem = Problem(code=code, what="So it was.", fix="Do this.") if code else None
    node, screen = swept(over(phase, problem=problem)), Words()
    assert await run(node, screen, "train.py", pressed=pressed) == wanted
    assert f"To continue: tandem sweep --resume {SWEEP}" in screen.said


async def test_ctrl_c_stops_and_the_third_one_leaves() -> None:
    node, screen = swept(), Words()
    assert await run(node, screen, "train.py", "--", "--lr", "1,2", pressed=3) == ExitCode.INTERRUPTED
    assert node.commands.count(StopSweep()) == 3
    assert "Stopping all trials at the end of a step." in screen.said


async def test_a_sweep_goes_on_with_more_values() -> None:
    node, screen = swept(over("finished", finished(1, 0.5), finished(2, 0.5))), Words()
    assert await run(node, screen, "--resume", "--", "--lr", "5,6") == ExitCode.OK
    [command] = node.commands
    assert command == ResumeSweep(sweep=SweepId(""), argument_sets=(("--lr", "5"), ("--lr", "6")))


async def test_a_sweep_that_goes_on_takes_no_options_that_it_would_ignore() -> None:
    node = swept()
    with pytest.raises(TandemError, match="cannot be used with --solo, --repeat and --downloads"):
        await run(node, Words(), "--resume", "--solo", "--repeat", "2", "--no-downloads")
    assert node.commands == []


async def test_values_that_make_no_sweep_are_refused_before_anything_is_asked_for() -> None:
    node = swept()
    with pytest.raises(TandemError, match="empty value"):
        await run(node, Words(), "train.py", "--", "--lr", "1,,2")
    with pytest.raises(TandemError, match="--models does not accept"):
        await run(node, Words(), "train.py", "--models", "few")
    assert not any(isinstance(each, StartSweep) for each in node.commands)
