from __future__ import annotations

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
