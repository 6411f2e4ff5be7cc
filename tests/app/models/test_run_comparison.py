"""Which of several runs was better, and their differences."""

from __future__ import annotations

from typing import Literal

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from app.models.run_comparison import POSITIONAL, Line, compared, flags, labels_of, ranked
from core.vocabulary.answers import RunEntry
from core.vocabulary.ids import RunId
from core.vocabulary.phases import Stopped
from core.vocabulary.progress import Audits, Best, Diverged, Summary
from tests.app import world


def run(number: int, *arguments: str, name: str = "", **best: float) -> RunEntry:
    kept = {metric: Best(value=value, epoch=4) for metric, value in best.items()}
    return replace(world.entry(number), arguments=arguments, name=name, best=kept)


def line(lines: tuple[Line, ...], name: str) -> Line:
    return next(line for line in lines if line.name == name)


def test_the_better_of_two_runs_is_named_with_both_values() -> None:
    found = compared(
        [
            run(0, name="first", val_loss=0.3, val_accuracy=0.9),
            run(1, name="second", val_loss=0.2, val_accuracy=0.8),
        ]
    )
    assert found.verdict == ("“second” was better: val_loss 0.2000 in epoch 5, against 0.3000 in epoch 5."), (
        "the loss of a validation decides"
    )
    assert found.better == 1
    assert line(found.lines, "Best val_loss") == Line("Best val_loss", ("0.3000", "0.2000"), frozenset({1}))
    assert line(found.lines, "Best val_accuracy").best == {0}, "and the rest is not hidden"


def test_higher_is_better_where_the_metric_says_so() -> None:
    entries = [run(0, name="a", val_auc=0.7), run(1, name="b", val_auc=0.9), run(2, name="c", val_auc=0.8)]
    assert ranked(entries) == [1, 2, 0]
    found = compared(entries)
    assert (
        found.verdict
        == "“b” was the best of 3: val_auc 0.9000 in epoch 5; next is “c” with 0.8000 in epoch 5."
    )


def test_runs_that_are_as_good_and_runs_without_a_common_metric_have_no_winner() -> None:
    assert compared([run(0, loss=0.5), run(1, loss=0.5)]).better is None
    found = compared([run(0, loss=0.5), replace(run(1), summary=Summary())])
    assert found.better is None
    assert found.verdict == "They have no common metric that shows which was better."
    assert ranked([run(0), replace(run(1), summary=Summary())]) == [0, 1], "they stay as they come"


def lost(entry: RunEntry, value: Literal["NaN", "infinite"] = "NaN") -> RunEntry:
    return replace(entry, summary=replace(entry.summary, diverged=Diverged(value=value, epoch=30, step=9)))


def test_a_run_whose_loss_became_nan_is_never_better() -> None:
    best, good, worst = (run(0, name="a", loss=0.1), run(1, name="b", loss=0.2), run(2, name="c", loss=0.3))
    found = compared([lost(best), good])
    assert (found.verdict, found.better) == ("“b” was better: the loss of “a” became NaN.", 1)
    assert line(found.lines, "Best loss").best == {1}
    assert line(found.lines, "State").values == ("Finished, Loss became NaN in epoch 31", "Finished")
    found = compared([worst, lost(best, "infinite"), good])
    assert found.better == 2 and ranked([worst, lost(best), good]) == [2, 0, 1]
    assert found.verdict == (
        "“b” was better: loss 0.2000 in epoch 5, against 0.3000 in epoch 5. The loss of “a” became infinite."
    )
    found = compared([lost(best), good, lost(replace(worst, best={}), "infinite")])
    assert found.better == 1
    assert found.verdict == "“b” was better: the loss of “a” became NaN, and that of “c” became infinite."
    found = compared([lost(best), replace(good, best={}, summary=Summary())])
    assert (found.verdict, found.better) == (
        "They have no common metric that shows which was better. The loss of “a” became NaN.",
        None,
    )
    found = compared([lost(best), lost(good)])
    assert (found.verdict, found.better) == (
        "None was better: the loss of each became NaN or infinite.",
        None,
    )
    assert line(found.lines, "Best loss").best == set()


def test_a_run_of_an_earlier_tandem_is_compared_by_its_last_values() -> None:
    found = compared([world.entry(0), run(1, val_loss=0.05)])
    assert "0.0500 in epoch 5, against 0.1023 at the end" in found.verdict


def test_arguments_are_compared_by_name_and_what_is_common_is_said_once() -> None:
    found = compared(
        [run(0, "--lr", "0.1", "--epochs=8", "data.csv"), run(1, "--lr", "-0.2", "--epochs=8", "--fast")]
    )
    assert line(found.lines, "--lr").values == ("0.1", "-0.2")
    assert line(found.lines, "--fast").values == ("–", "yes")
    assert line(found.lines, POSITIONAL).values == ("data.csv", "–")
    assert all(line.differs for line in found.lines)
    assert "The same in both: " in found.same
    assert "--epochs 8" in found.same and "Script digits.py" in found.same


def test_no_two_runs_are_called_the_same() -> None:
    entries = [run(0), run(0), run(1, name="mine")]
    labels = labels_of(entries)
    assert len(set(labels)) == 3
    assert labels[2].startswith("mine")
    assert labels[0].startswith("digits.py, "), "beside a name, a time alone says too little"
    other = replace(run(1), script="other.py", source="/home/ada/other/other.py")
    assert labels_of([run(0), other])[1].startswith("other.py, ")


def test_a_state_that_differs_is_among_the_lines() -> None:
    found = compared([run(0), replace(run(1), phase=Stopped(by="ben"))])
    assert line(found.lines, "State").values == ("Finished", "Stopped")


def test_runs_that_are_not_one_machines_say_so_beside_those_that_are() -> None:
    exact = Summary(steps=9, audits=Audits(steps=9, audited=4))
    summaries = (
        exact,
        replace(exact, met_every=32),
        replace(exact, met_every=16, sent_bits=8),
        replace(exact, told=("A metric of the batch as a whole.",)),
        Summary(),
        Summary(steps=9),
    )
    entries = [replace(run(at), summary=each) for at, each in enumerate(summaries)]
    alone = replace(run(6), summary=Summary(steps=9), devices=("here",))
    assert line(compared([*entries, alone]).lines, "As on one machine").values == (
        "yes",
        "no: met every 32 steps",
        "no: met every 16 steps, gradients sent in 8 bits",
        "perhaps not",
        "",
        "",
        "yes",
    )
    sound = compared([entries[0], entries[4], alone])
    assert all(each.name != "As on one machine" for each in sound.lines), "as one expects"
    assert "As on one machine" not in sound.same


@given(words=st.lists(st.text(max_size=20), max_size=8), values=st.lists(st.floats(), min_size=2, max_size=5))
def test_whatever_a_run_was_given_can_be_compared(words: list[str], values: list[float]) -> None:
    flags(words)
    entries = [run(number, *words, val_loss=value) for number, value in enumerate(values)]
    found = compared(entries)
    assert sorted(ranked(entries)) == list(range(len(values)))
    assert all(len(line.values) == len(values) for line in found.lines)


def test_what_was_changed_says_more_than_when_it_was_run() -> None:
    one = replace(run(0), arguments=("--lr", "0.1"))
    assert labels_of([one, run(1)]) == ["lr 0.1", "lr default"]
    assert labels_of([one, run(1, name="mine")]) == ["lr 0.1", "mine"]
    assert labels_of([one, run(1, name="lr 0.1")]) == ["lr 0.1", "lr default"]
    both = ("--lr", "0.1", "--epochs", "5")
    entries = [replace(run(at), arguments=(*both, *more)) for at, more in enumerate(((), ("--fast",)))]
    assert labels_of(entries) == ["no fast", "fast"], "what both have says nothing"
    entries = [replace(run(at), arguments=("--seed", str(at), f"{at}.csv")) for at in range(2)]
    assert labels_of(entries) == ["seed 0, 0.csv", "seed 1, 1.csv"]


def test_the_year_is_said_only_where_it_tells_runs_apart() -> None:
    one, two = world.entry(0), world.entry(1)
    old = replace(one, run=RunId("20251121-101204-9f3a01bc"))
    assert [label[2] for label in labels_of([one, two])] == ["-", "-"], "month and day"
    assert [label[:5] for label in labels_of([one, old])] == ["2026-", "2025-"]
