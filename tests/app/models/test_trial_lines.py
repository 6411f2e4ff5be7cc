"""Which trials of a sweep are drawn over each other."""

from __future__ import annotations

from msgspec.structs import replace

from app.models.trial_lines import MOST, trial_lines
from core.vocabulary.ids import ProjectId, RunId, SweepId
from core.vocabulary.plan import RunSpec
from core.vocabulary.progress import Best, Diverged
from core.vocabulary.sweep import Sweep, SweepSpec, Trial

DIVERGED = Diverged(value="NaN", epoch=0, step=3)


def sweep(*losses: float, repeat: int = 1) -> Sweep:
    """Finished trials with these losses."""
    trials = tuple(
        Trial(
            number=at + 1,
            arguments=("--lr", str(at // repeat), "--epochs", "3"),
            seed=at % repeat,
            status="finished",
            run=RunId(f"run{at + 1}"),
            best={"loss": Best(value=loss, epoch=0)},
        )
        for at, loss in enumerate(losses)
    )
    sets = tuple(dict.fromkeys(trial.arguments for trial in trials))
    spec = SweepSpec(run=RunSpec(script="train.py"), argument_sets=sets, repeat=repeat)
    return Sweep(sweep=SweepId("s"), spec=spec, script="train.py", project=ProjectId("c" * 64), trials=trials)


def labels(of: Sweep) -> list[str]:
    return [line.label for line in trial_lines(of)]


def test_each_is_named_by_the_arguments_that_differ() -> None:
    assert labels(sweep(0.3, 0.1, 0.2)) == ["1: lr 0", "2: lr 1, best", "3: lr 2"]
    assert labels(sweep(0.3)) == ["trial 1, best"]
    assert labels(sweep(0.3, 0.1, repeat=2)) == ["trial 1", "trial 2, best"], "only the seeds differ"


def test_one_that_failed_or_whose_loss_became_nan_is_never_the_best() -> None:
    made = sweep(0.01, 0.02, 0.3)
    made = made.having(replace(made.trial(1), diverged=DIVERGED))
    made = made.having(replace(made.trial(2), status="failed"))
    assert labels(made) == ["1: lr 0, NaN", "2: lr 1, failed", "3: lr 2, best"]
    assert [line.number for line in trial_lines(made) if line.best] == [3]


def test_trials_under_way_and_the_best_of_many_are_drawn() -> None:
    made = sweep(*(float(at) for at in range(40)))
    made = made.having(replace(made.trial(40), status="running"))
    made = made.having(replace(made.trial(1), diverged=DIVERGED))
    made = made.having(replace(made.trial(2), status="waiting", run=None))
    assert [line.number for line in trial_lines(made)] == [*range(3, 2 + MOST), 40]


def test_a_line_says_when_there_is_more_to_read() -> None:
    made = sweep(0.3, 0.1)
    before = trial_lines(made)
    after = trial_lines(made.having(replace(made.trial(1), epochs=5)))
    assert before[0].state != after[0].state and before[1].state == after[1].state
