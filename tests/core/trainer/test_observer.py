from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, cast

import pytest

from core.report.points import RunPoints, by_use
from core.supervisor import spawn
from core.trainer.exact.interface import StepReport
from core.trainer.observer import ReportingObserver
from core.trainer.reporter import Reporter
from core.vocabulary import trainer_messages, wire
from core.vocabulary.ids import DeviceId
from core.vocabulary.progress import Diverged, EpochEnd, Progress

PIPE_LINE = (
    b'{"type":"progressed","progress":{"at_s":1001.0,"fit":0,"epoch":1,"epochs":5,"step":3,"batc'
    b'h":3,"steps_in_epoch":10,"logs":{"loss":0.5},"samples_s":3200.0,"steps_s":50.0,"step_s":0.'
    b'02,"wait_s":0.005,"grad_norm":1.25,"share":16,"wire_s":0.004,"wire_bytes":196,"done":14,"'
    b'diverged":null,"met_every":0,"sent_bits":0,"recent":null,"not_finite":{}}}'
)


class Kept:
    """Records reports in place of the reporter."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    def send(self, report: trainer_messages.Report) -> None:
        self.told.append(report.epoch if isinstance(report, trainer_messages.EpochEnded) else report)

    def progress(self, progress: Progress) -> None:
        self.told.append(progress)

    def of(self, kind: type) -> list[Any]:
        return [each for each in self.told if isinstance(each, kind)]


@pytest.fixture
def kept() -> Kept:
    return Kept()


@pytest.fixture
def observer(kept: Kept) -> ReportingObserver:
    return observing(kept, rank=1)


def observing(kept: Kept, rank: int) -> ReportingObserver:
    times, ticks = iter(range(1000, 10_000)), iter(range(10_000))
    return ReportingObserver(
        cast(Reporter, kept),
        shares=(3, 1),
        rank=rank,
        stop_asked=lambda: False,
        is_chief=lambda: rank == 0,
        clock=lambda: float(next(times)),
        monotonic=lambda: float(next(ticks)),  # Every step is due.
    )


def step(
    observer: ReportingObserver, count: int, epoch: int, batch: int, steps: int | None = 10, rows: int = 64
) -> None:
    observer.on_step(report(count, epoch, batch, steps, rows))


def report(
    count: int,
    epoch: int = 0,
    batch: int = 1,
    steps: int | None = 10,
    rows: int = 64,
    logs: Mapping[str, float] = MappingProxyType({"loss": 0.5}),
) -> StepReport:
    return StepReport(
        step=count, epoch=epoch, batch=batch, steps_in_epoch=steps, rows=rows, logs=logs, step_s=0.02
    )


def test_a_laptop_with_several_trainers_reports_the_rows_of_all(kept: Kept) -> None:
    observer = ReportingObserver(
        cast(Reporter, kept), shares=(1, 1, 2), rank=0, ranks=(0, 1), stop_asked=lambda: False
    )
    observer.on_fit_began(5, 10, 64)
    step(observer, 1, 0, 1)
    assert kept.of(Progress)[-1].share == 32


def test_a_step_is_reported_with_its_position_and_speed(observer: ReportingObserver, kept: Kept) -> None:
    observer.on_fit_began(5, 10, 64)
    step(observer, 1, 0, 1)
    step(observer, 14, 1, 4)
    first, second = kept.of(Progress)
    assert (first.fit, first.epoch, first.epochs, first.step, first.batch) == (0, 0, 5, 0, 0)
    assert (second.epoch, second.step, second.batch, second.steps_in_epoch) == (1, 13, 3, 10)
    assert second.samples_s == pytest.approx(3200)
    assert second.share == 16
    assert second.logs == {"loss": 0.5}
    observer.on_step(replace(report(15, 1, 5), sent_bits=8, met_every=16))
    assert [(each.sent_bits, each.met_every) for each in kept.of(Progress)] == [(0, 0), (0, 0), (8, 16)]


def test_the_metric_that_a_callback_monitors_is_reported_first(
    observer: ReportingObserver, kept: Kept
) -> None:
    observer.on_fit_began(5, 10, 64, monitored="auc")
    logs = {"accuracy": 0.5, "auc": 0.6, "loss": 0.7, "val_auc": 0.8}
    observer.on_step(report(1, 0, 1, logs=logs))
    (told,) = kept.of(Progress)
    assert list(told.logs) == ["auc", "val_auc", "accuracy", "loss"]
    assert by_use(name.removeprefix("val_") for name in told.logs) == ["loss", "auc", "accuracy"]


def test_a_batch_on_its_own_is_in_no_epoch(observer: ReportingObserver, kept: Kept) -> None:
    """Screens and returns rely on that: it has no checkpoint, not even after a fit."""
    for count in (1, 2):
        step(observer, count, 0, 0, None)
    observer.on_fit_began(5, 10, 64)
    step(observer, 3, 0, 1)
    step(observer, 4, 0, 0, None)
    told = kept.of(Progress)
    assert [each.epochs for each in told] == [0, 0, 5, 0]
    assert [each.steps_in_epoch for each in told] == [None, None, 10, None]
    assert [each.step for each in told[:2]] == [0, 1]


def test_an_epochs_end_reports_its_last_step_even_if_no_report_was_due(
    observer: ReportingObserver, kept: Kept
) -> None:
    observer.on_fit_began(2, 10, 64)
    step(observer, 1, 0, 1)
    observer.on_epoch_ended(0, {"val_loss": 0.4})
    observer.on_epoch_ended(1, {"val_loss": 0.3})
    assert [progress.step for progress in kept.of(Progress)] == [0, 9, 19]
    ends = kept.of(EpochEnd)
    assert [(end.epoch, end.step, end.seconds > 0) for end in ends] == [(0, 9, True), (1, 19, True)]
    assert ends[0].logs == {"val_loss": 0.4}


def test_a_second_fit_counts_from_zero_again(observer: ReportingObserver, kept: Kept) -> None:
    observer.on_fit_began(1, 10, 64)
    step(observer, 10, 0, 10)
    observer.on_fit_ended()
    observer.on_fit_began(1, 10, 64)
    step(observer, 12, 0, 2)
    assert [(each.fit, each.step) for each in kept.of(Progress)] == [(0, 9), (1, 1)]
    assert observer.fitting and observer.began


def test_only_the_newest_of_many_steps_in_a_tenth_of_a_second_is_sent(kept: Kept) -> None:
    """The only throttle between Keras and a plot."""
    now_s = 5.0
    observer = ReportingObserver(
        cast(Reporter, kept), shares=(1,), rank=0, stop_asked=lambda: False, monotonic=lambda: now_s
    )
    observer.on_fit_began(1, 10_000, 64)
    assert observer.step_due()
    step(observer, 1, 0, 1, steps=10_000)
    for count in range(2, 501):
        assert not observer.step_due()
        step(observer, count, 0, count, steps=10_000)
    assert [progress.step for progress in kept.of(Progress)] == [0]
    observer.on_fit_ended()
    assert [progress.step for progress in kept.of(Progress)] == [0, 499]
    now_s += 0.1
    assert observer.step_due()


@pytest.mark.parametrize(("rank", "shares", "reports"), [(0, (3, 1), 11), (1, (3, 1), 3), (1, (), 11)])
def test_a_member_that_shares_a_chiefs_steps_reports_two_a_second(
    kept: Kept, rank: int, shares: tuple[int, ...], reports: int
) -> None:
    """Other members' losses are their own."""
    now_s = [0.0]
    observer = ReportingObserver(
        cast(Reporter, kept),
        shares=shares,
        rank=rank,
        stop_asked=lambda: False,
        is_chief=lambda: rank == 0,
        monotonic=lambda: now_s[0],
    )
    observer.on_fit_began(1, 1000, 64)
    for count in range(65):
        now_s[0] = count / 64
        step(observer, count + 1, 0, count + 1, steps=1000)
    assert len(kept.of(Progress)) in (reports - 1, reports)
    observer.is_chief = lambda: True
    now_s[0] = 2.0
    step(observer, 70, 0, 70, steps=1000)
    now_s[0] = 2.125
    assert observer.step_due(), "it leads now"


def test_epochs_that_are_shorter_than_the_throttle_report_no_more_steps(kept: Kept) -> None:
    observer = ReportingObserver(
        cast(Reporter, kept), shares=(1,), rank=0, stop_asked=lambda: False, monotonic=lambda: 5.0
    )
    observer.on_fit_began(50, 10, 64)
    step(observer, 1, 0, 1)
    for epoch in range(50):
        observer.on_epoch_ended(epoch, {"loss": 0.5})
    observer.on_fit_ended()
    assert [progress.step for progress in kept.of(Progress)] == [0, 499]
    assert len(kept.of(EpochEnd)) == 50


def test_a_steps_line_on_the_pipe_stays_as_it_was(kept: Kept, observer: ReportingObserver) -> None:
    observer.on_fit_began(5, 10, 64)
    full = replace(report(14, 1, 4), wait_s=0.005, grad_norm=1.25, wire_s=0.004, wire_bytes=196)
    observer.on_step(full)
    (progress,) = kept.of(Progress)
    assert wire.to_json(trainer_messages.Progressed(progress=progress)) == PIPE_LINE


def test_a_later_first_epoch_does_not_count_steps_never_made(observer: ReportingObserver, kept: Kept) -> None:
    observer.on_fit_began(5, 10, 64)
    step(observer, 3, 3, 3)
    observer.on_epoch_ended(3, {})
    assert [each.step for each in kept.of(Progress)] == [2, 9]


def test_without_a_known_number_of_steps_the_engines_count_is_used(
    observer: ReportingObserver, kept: Kept
) -> None:
    observer.on_fit_began(2, None, None)
    step(observer, 1, 0, 1, steps=None)
    step(observer, 37, 1, 5, steps=None)
    assert [each.step for each in kept.of(Progress)] == [0, 36]


def test_time_for_callbacks_and_data_counts_in_steps_per_second(kept: Kept) -> None:
    now_s = [0.0]
    observer = ReportingObserver(
        cast(Reporter, kept), shares=(1,), rank=0, stop_asked=lambda: False, monotonic=lambda: now_s[0]
    )
    observer.on_fit_began(5, 10, 64)
    for count, at_s in ((1, 1.0), (5, 3.0), (15, 8.0), (23, 23.0), (25, 33.0)):
        now_s[0] = at_s
        step(observer, count, count // 10, count % 10)
    observer.on_fit_began(5, 10, 64)
    now_s[0] = 90.0
    step(observer, 26, 0, 1)
    assert [each.steps_s for each in kept.of(Progress)] == [50.0, 2.0, 2.0, 1.0, 0.75, 50.0]
    assert {each.samples_s for each in kept.of(Progress)} == {3200.0}


def test_unknown_rows_give_no_rate_of_samples(observer: ReportingObserver, kept: Kept) -> None:
    observer.on_fit_began(1, None, None)
    step(observer, 1, 0, 1, rows=0)
    (progress,) = kept.of(Progress)
    assert progress.samples_s is None and progress.share is None
    assert progress.steps_s == pytest.approx(50)


def test_training_batch_by_batch_is_a_fit_too(observer: ReportingObserver, kept: Kept) -> None:
    step(observer, 1, 0, 0, steps=None)
    step(observer, 2, 0, 0, steps=None)
    assert [(each.fit, each.step) for each in kept.of(Progress)] == [(0, 0), (0, 1)]


def test_other_events_are_passed_on(observer: ReportingObserver, kept: Kept) -> None:
    observer.on_evaluated({"loss": 1.0})
    observer.on_said("falls back")
    assert kept.told == [
        trainer_messages.Evaluated(logs={"loss": 1.0}),
        trainer_messages.Said(words="falls back"),
    ]
    assert not observer.should_stop()


@pytest.mark.parametrize("loss", [math.nan, math.inf])
def test_a_loss_that_is_not_finite_is_reported_once_a_fit_and_left_out(kept: Kept, loss: float) -> None:
    observer = observing(kept, rank=0)
    for _ in range(2):
        observer.on_fit_began(2, 10, 64)
        for batch in range(1, 4):
            observer.on_step(report(batch, batch=batch, logs={"loss": loss, "mae": 1.0}))
        observer.on_epoch_ended(0, {"loss": loss, "mae": 1.0})
        observer.on_evaluated({"loss": loss})
    said = [report.words for report in kept.of(trainer_messages.Said)]
    assert len(said) == 2
    assert f"has become {loss}" in said[0]
    for told in kept.told:
        message = trainer_messages.EpochEnded(epoch=told) if isinstance(told, EpochEnd) else told
        message = trainer_messages.Progressed(progress=message) if isinstance(message, Progress) else message
        assert wire.from_json(wire.to_json(message), type(message)) == message
    assert kept.of(Progress)[0].logs == {"mae": 1.0}


def test_whatever_is_no_finite_number_reaches_the_plots_as_what_it_is(
    observer: ReportingObserver, kept: Kept
) -> None:
    """Trainer → JSON → curves."""
    logs = {"loss": 0.5, "mae": math.inf, "gain": -math.inf, "auc": math.nan}
    observer.on_fit_began(2, 10, 64)
    observer.on_step(report(1, batch=1, logs=logs))
    observer.on_step(replace(report(2, batch=2, logs=logs), recent={"loss": 0.4, "mae": math.nan}))
    observer.on_epoch_ended(0, {**logs, "val_loss": math.nan, "val_mae": 1.0})
    points = RunPoints()
    for told in kept.told:
        if isinstance(told, Progress | EpochEnd):
            points.add(DeviceId("a"), wire.from_json(wire.to_json(told), type(told)))
    bad = {
        f"{'val_' * key.validation}{key.metric}": [str(line.values[at]) for at in line.bad]
        for key, line in points.curves.items()
        if line.bad
    }
    assert bad == {"mae": ["inf", "nan"], "gain": ["-inf"], "auc": ["nan"], "val_loss": ["nan"]}
    ends = {key.metric: str(line.values[0]) for key, line in points.ends.items()}
    assert ends == {"loss": "0.5", "mae": "inf", "gain": "-inf", "auc": "nan"}
    assert kept.of(EpochEnd)[0].values == pytest.approx(
        {**logs, "val_loss": math.nan, "val_mae": 1.0}, nan_ok=True
    )


def test_the_step_at_which_a_loss_diverged_is_reported_until_it_is_finite_again(
    observer: ReportingObserver, kept: Kept
) -> None:
    observer.on_fit_began(9, 10, 64)
    for epoch, loss in enumerate((0.5, math.nan, math.inf, 0.4)):
        observer.on_epoch_ended(epoch, {"loss": loss})
    assert [end.diverged for end in kept.of(EpochEnd)] == [
        None,
        lost := Diverged(value="NaN", epoch=1, step=19),
        lost,
        None,
    ]
    assert lost.words == "Loss became NaN in epoch 2"
    observer.on_step(report(41, epoch=4, batch=1, logs={"loss": math.inf}))
    assert kept.of(Progress)[-1].diverged == Diverged(value="infinite", epoch=4, step=40)
    observer.on_fit_began(1, 10, 64)
    observer.on_epoch_ended(0, {"mae": 1.0})
    assert kept.of(EpochEnd)[-1].diverged is None


def test_a_step_is_reported_with_its_wait_its_gradients_norm_and_its_bytes(
    observer: ReportingObserver, kept: Kept
) -> None:
    observer.on_fit_began(1, 10, 64)
    observer.on_step(replace(report(1), wait_s=0.005, grad_norm=1.25, wire_bytes=196))
    told = kept.of(Progress)[0]
    assert (told.wait_s, told.grad_norm, told.wire_bytes) == (0.005, 1.25, 196)


def test_a_loss_that_all_members_share_is_reported_by_the_chief_alone(
    observer: ReportingObserver, kept: Kept
) -> None:
    observer.on_fit_began(1, 10, 64)
    observer.on_step(report(1, logs={"loss": math.nan}))
    assert kept.of(trainer_messages.Said) == []
    assert kept.of(Progress)[0].logs == {}


@pytest.mark.parametrize("variable", ["KERAS_BACKEND", spawn.BACKEND_ASKED])
def test_that_another_backend_was_asked_for_is_reported_once(
    kept: Kept, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv("KERAS_BACKEND", "tensorflow")
    monkeypatch.setenv(variable, "torch")
    chief, worker = observing(kept, rank=0), observing(kept, rank=1)
    for observer in (chief, worker, chief):
        observer.on_fit_began(1, 10, 64)
    (said,) = kept.of(trainer_messages.Said)
    assert said.words.startswith("KERAS_BACKEND is 'torch', but Tandem trains on TensorFlow")


def test_the_expected_backend_is_not_reported(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("KERAS_BACKEND", spawn.BACKEND_ASKED):
        monkeypatch.setenv(variable, "tensorflow")
    observing(kept, rank=0).on_fit_began(1, 10, 64)
    assert kept.of(trainer_messages.Said) == []


def test_an_epoch_that_is_broken_off_ends_at_the_step_that_was_done(
    observer: ReportingObserver, kept: Kept
) -> None:
    observer.on_fit_began(3, 2000, 64, 0, 0)
    step(observer, 30, 0, 30, steps=2000)
    observer.on_epoch_ended(0, {"loss": 0.5}, 35, False)
    (end,) = kept.of(EpochEnd)
    assert (end.whole, end.steps, end.steps_in_epoch, end.step) == (False, 35, 2000, 34)
    newest = kept.of(Progress)[-1]
    assert (newest.step, newest.batch, newest.done, newest.steps_in_epoch) == (34, 34, 35, 2000)


def test_a_fit_that_resumes_counts_from_where_it_was(observer: ReportingObserver, kept: Kept) -> None:
    observer.on_fit_began(5, 10, 64, 0, 0)
    step(observer, 36, 3, 6)
    observer.on_epoch_ended(3, {"loss": 0.5}, 10, True)
    progress, at_end = kept.of(Progress)
    assert (progress.step, progress.done) == (35, 36)
    assert (at_end.step, at_end.done) == (39, 40)
    assert kept.of(EpochEnd)[0].whole


def test_a_fit_of_unknown_length_that_resumes_counts_from_where_it_was(
    observer: ReportingObserver, kept: Kept
) -> None:
    observer.on_fit_began(5, None, 64, 0, 20)
    step(observer, 56, 3, 6, steps=None)
    assert (kept.of(Progress)[0].step, kept.of(Progress)[0].done) == (35, 56)
