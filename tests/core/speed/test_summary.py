from __future__ import annotations

from msgspec.structs import replace

from core.speed.summary import Tally, counted, summary
from core.vocabulary import events as ev
from core.vocabulary.ids import DeviceId
from core.vocabulary.phases import Exit
from core.vocabulary.progress import EpochEnd, Progress
from tests.core.cluster.laptops import ANNA, BEN, RUN


def step(number: int, at_s: float, *, fit: int = 0, device: DeviceId = ANNA) -> ev.MemberProgressed:
    progress = Progress(at_s=at_s, fit=fit, epoch=0, epochs=1, step=number, batch=number, samples_s=64.0)
    return ev.MemberProgressed(run=RUN, device=device, progress=progress)


def tally(*events: tuple[ev.RunEvent, float]) -> Tally:
    known = Tally(chief=ANNA, pressed_s=10.0)
    for event, now_s in events:
        known = counted(known, event, now_s)
    return known


def test_nothing_happened() -> None:
    assert summary(tally(), 12.0).total_s == 2.0
    assert summary(tally(), 12.0).first_step_s is None


def test_steps_of_several_fits_add_up() -> None:
    done = summary(
        tally(
            (step(0, 1.0), 20.0),
            (step(9, 2.0), 21.0),
            (step(0, 3.0, fit=1), 22.0),
            (step(4, 4.0, fit=1), 23.0),
        ),
        30.0,
    )
    assert done.steps == 15
    assert done.first_step_s == 10.0
    assert done.train_s == 3.0
    assert done.total_s == 20.0
    assert done.steps_s == 14 / 3
    assert done.samples_s == 64.0


def test_only_the_chiefs_steps_count_but_anybodys_is_the_first() -> None:
    done = summary(tally((step(5, 1.0, device=BEN), 11.0), (step(0, 1.0), 12.0)), 13.0)
    assert done.first_step_s == 1.0
    assert done.steps == 1


def test_the_end_of_an_epoch_is_part_of_the_training() -> None:
    epoch = EpochEnd(at_s=1.0, epoch=0, epochs=1, step=9, seconds=1.0)
    ended = ev.MemberEndedEpoch(run=RUN, device=ANNA, epoch=epoch)
    assert summary(tally((step(0, 1.0), 20.0), (ended, 25.0)), 30.0).train_s == 5.0


def test_one_step_alone_has_no_rate_of_steps_but_one_of_rows() -> None:
    done = summary(tally((step(0, 1.0), 20.0)), 30.0)
    assert (done.steps, done.steps_s, done.samples_s, done.train_s) == (1, None, 64.0, 0.0)


def test_the_rate_of_rows_is_the_mean_of_what_was_told() -> None:
    silent = ev.MemberProgressed(
        run=RUN, device=ANNA, progress=Progress(at_s=2.0, epoch=0, epochs=1, step=1, batch=1)
    )
    slower = ev.MemberProgressed(
        run=RUN, device=ANNA, progress=replace(step(2, 3.0).progress, samples_s=32.0)
    )
    assert summary(tally((step(0, 1.0), 20.0), (silent, 21.0), (slower, 22.0)), 30.0).samples_s == 48.0


def test_of_a_run_that_has_not_begun_nothing_else_is_known() -> None:
    done = summary(tally(), 12.0)
    assert (done.steps, done.epochs, done.steps_s, done.samples_s, done.train_s) == (0, 0, None, None, None)


def test_only_the_chief_says_which_strategy_it_is() -> None:
    met = ev.MemberPhaseChanged(run=RUN, device=BEN, phase="training", strategy="Other")
    silent = ev.MemberPhaseChanged(run=RUN, device=ANNA, phase="stopping")
    first = ev.MemberPhaseChanged(run=RUN, device=ANNA, phase="training", strategy="Mirrored")
    assert summary(tally((first, 11.0), (met, 12.0), (silent, 13.0)), 14.0).strategy == "Mirrored"


def test_epochs_weights_and_the_strategy() -> None:
    epoch = EpochEnd(at_s=1.0, epoch=0, epochs=1, step=9, seconds=1.0, logs={"loss": 0.5})
    met = ev.MemberPhaseChanged(run=RUN, device=ANNA, phase="training", strategy="MirroredStrategy")
    done = summary(
        tally(
            (met, 11.0),
            (ev.MemberEndedEpoch(run=RUN, device=ANNA, epoch=epoch), 12.0),
            (ev.MemberEndedEpoch(run=RUN, device=BEN, epoch=epoch), 12.0),
            (
                ev.MemberEnded(
                    run=RUN, device=BEN, task="worker:0", exit=Exit(reason="finished", weights_sha256="a")
                ),
                13.0,
            ),
        ),
        14.0,
    )
    assert done.epochs == 1
    assert done.last_logs == {"loss": 0.5}
    assert done.weights_sha256 == {BEN: "a"}
    assert done.strategy == "MirroredStrategy"
