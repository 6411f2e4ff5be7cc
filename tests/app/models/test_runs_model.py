"""The history's table."""

from datetime import datetime

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from PySide6.QtCore import QPersistentModelIndex, Qt
from PySide6.QtTest import QAbstractItemModelTester
from pytestqt.qtbot import QtBot

from app.models.runs_model import (
    CURVE_ROLE,
    MORE_ROLE,
    SORT_ROLE,
    Column,
    RunsModel,
    best,
    called,
    gain_words,
    kind,
    lately,
)
from core.vocabulary.errors import Problem
from core.vocabulary.phases import Failed, Training
from core.vocabulary.progress import Best, Diverged, Expectation, Settled, Summary
from tests.app import world


def made(*entries: object) -> tuple[RunsModel, QAbstractItemModelTester]:
    model = RunsModel()
    tester = QAbstractItemModelTester(model, QAbstractItemModelTester.FailureReportingMode.Fatal)
    model.show_runs(entries)  # type: ignore[arg-type]
    return model, tester


def text(model: RunsModel, row: int, column: Column) -> object:
    return model.data(model.index(row, column))


def below(model: RunsModel, row: int, column: Column) -> object:
    return model.data(model.index(row, column), MORE_ROLE)


def test_a_run_is_one_row_of_words(qtbot: QtBot) -> None:
    model, _ = made(world.entry())
    assert text(model, 0, Column.RUN) == "digits.py"
    assert text(model, 0, Column.STATE) == "Finished"
    assert (text(model, 0, Column.BEST), below(model, 0, Column.BEST)) == ("0.1023", "val_loss, at the end")
    assert text(model, 0, Column.SPEED) == "590 samples/s"
    assert below(model, 0, Column.STARTED) == "here, Bob's laptop"
    assert text(model, 0, Column.DURATION) == "0:31"


def test_how_rarely_laptops_met_is_listed_beside_any_other_difference(qtbot: QtBot) -> None:
    rare = Summary(met_every=32)
    entries = [
        replace(world.entry(number), summary=summary)
        for number, summary in enumerate((rare, replace(rare, told=("A metric.",))))
    ]
    model, _ = made(*entries)
    assert [below(model, row, Column.STATE) for row in (0, 1)] == [
        "met every 32 steps: not the result of one machine",
        "not as on one machine, met every 32 steps",
    ]
    assert [kind(entry) for entry in entries] == ["good", "warning"]


def test_runs_of_one_script_are_told_apart_by_its_folder_and_the_loss_is_a_curve(qtbot: QtBot) -> None:
    entry = world.entry(script="train.py", source="/home/ada/mnist/train.py")
    entry = replace(entry, losses=(2.3, 1.0, 0.5))
    model, _ = made(entry, world.entry(1, script="train.py", source="/home/ada/cats/train.py"))
    assert [text(model, row, Column.RUN) for row in (0, 1)] == ["mnist/train.py", "cats/train.py"]
    assert called(replace(entry, source="")) == "train.py", "where another laptop has it nobody knows"
    assert called(replace(entry, name="wide")) == "wide"
    assert [model.data(model.index(row, Column.LOSS), CURVE_ROLE) for row in (0, 1)] == [(2.3, 1.0, 0.5), ()]
    said = model.data(model.index(0, Column.LOSS), Qt.ItemDataRole.AccessibleTextRole)
    assert said == "Loss from 2.3000 to 0.5000"


def test_changes_are_made_in_place(qtbot: QtBot) -> None:
    one, two, three = world.entry(1), world.entry(2), world.entry(3)
    model, _ = made(one, two)
    resets: list[int] = []
    model.modelReset.connect(lambda: resets.append(1))
    kept = QPersistentModelIndex(model.index(1, 0))
    failed = type(two)(**{**{n: getattr(two, n) for n in two.__struct_fields__}, "phase": Training()})
    with qtbot.waitSignal(model.dataChanged):
        model.show_runs((three, one, failed))
    assert kept.row() == 2
    assert text(model, 2, Column.STATE) == "Training"
    model.show_runs((failed,))
    assert kept.row() == 0
    assert not resets


@settings(
    max_examples=50,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(first=st.lists(st.integers(0, 9), unique=True), then=st.lists(st.integers(0, 9), unique=True))
def test_it_shows_what_it_is_given(qtbot: QtBot, first: list[int], then: list[int]) -> None:
    model, _ = made(*(world.entry(n) for n in first))
    model.show_runs([world.entry(n) for n in then])
    assert [model.entry(row).run for row in range(model.rowCount())] == [world.entry(n).run for n in then]


def test_it_sorts_by_what_is_meant_not_by_the_words(qtbot: QtBot) -> None:
    model, _ = made(world.entry(0), world.entry(9))
    keys = [model.data(model.index(row, Column.DURATION), SORT_ROLE) for row in (0, 1)]
    assert keys == [31.0, 3631.0]


def test_a_run_whose_loss_became_nan_is_behind_all_others(qtbot: QtBot) -> None:
    entry = replace(world.entry(0), losses=(2.3, 0.1), best={"loss": Best(value=0.1, epoch=2)})
    lost = replace(entry, summary=replace(entry.summary, diverged=Diverged(value="NaN", epoch=3, step=9)))
    model, _ = made(replace(entry, run=world.entry(1).run), lost)
    for column in (Column.LOSS, Column.BEST):
        keys = [model.data(model.index(row, column), SORT_ROLE) for row in (0, 1)]
        assert keys == [0.1, float("inf")], column
    said = model.data(model.index(1, Column.LOSS), Qt.ItemDataRole.AccessibleTextRole)
    assert said == "Loss from 2.3000 to NaN"


def test_a_failure_tells_its_reason_in_a_plain_tooltip(qtbot: QtBot) -> None:
    problem = Problem(code="x", what="<b>Bob</b> went away.", fix="Look.")
    model, _ = made(world.entry(last=Failed(problem=problem)))
    tip = model.data(model.index(0, Column.STATE), Qt.ItemDataRole.ToolTipRole)
    assert tip == "<p>&lt;b&gt;Bob&lt;/b&gt; went away. Look.</p>"


def test_a_run_without_a_validation_shows_its_loss() -> None:
    entry = world.entry()
    summary = type(entry.summary)(last_logs={"loss": 0.5, "accuracy": 0.9, "lr": 0.1})
    changed = type(entry)(**{**{n: getattr(entry, n) for n in entry.__struct_fields__}, "summary": summary})
    assert best(changed) == ("0.5000", "loss, at the end")


@pytest.mark.parametrize(
    ("gain", "said"),
    [
        (None, ""),
        (1.23, "1.2× one laptop"),
        (1.0, "1.0× one laptop"),
        (0.2, "5.0× slower"),
        (0.006, "167× slower"),
    ],
)
def test_no_run_is_said_to_be_nought_times_as_fast(gain: float | None, said: str) -> None:
    assert gain_words(gain) == said


def test_a_run_of_steps_too_small_to_share_is_not_said_to_be_slower(qtbot: QtBot) -> None:
    tiny = Expectation(alone_s=(0.004, 0.006), step_s=0.03, wire_s=0.02, wire_bytes=150_000, shares=(1, 1))
    summary = Summary(expectation=tiny, settled=Settled(step_s=0.02, samples_s=590.0))
    large = replace(summary, expectation=replace(tiny, wire_bytes=9_000_000))
    model, _ = made(*(replace(world.entry(at), summary=each) for at, each in enumerate((summary, large))))
    assert [text(model, row, Column.SPEED) for row in (0, 1)] == ["590 samples/s"] * 2
    assert [below(model, row, Column.SPEED) for row in (0, 1)] == ["", "5.0× slower"]


@pytest.mark.parametrize(
    ("then", "said"),
    [
        (datetime(2026, 11, 27, 0, 3), "today 00:03"),
        (datetime(2026, 11, 26, 23, 59), "yesterday 23:59"),
        (datetime(2026, 11, 21, 9, 0), f"{datetime(2026, 11, 21):%a} 09:00"),
        (datetime(2026, 11, 20, 9, 0), f"20 {datetime(2026, 11, 20):%b} 09:00"),
        (datetime(2026, 11, 28, 9, 0), f"28 {datetime(2026, 11, 28):%b} 09:00"),
        (datetime(2025, 11, 27, 9, 0), "2025-11-27 09:00"),
    ],
)
def test_a_start_is_reported_as_one_says_it(then: datetime, said: str) -> None:
    assert lately(then.timestamp(), datetime(2026, 11, 27, 12).timestamp()) == said


def test_a_start_that_no_calendar_has_is_unknown() -> None:
    assert lately(1e300, 0.0) == "unknown"
