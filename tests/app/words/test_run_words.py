from typing import Any

import pytest
from msgspec.structs import replace

from app.words import run_words
from core.vocabulary import phases
from core.vocabulary.errors import Problem
from core.vocabulary.ids import DeviceId
from core.vocabulary.plan import Member, Moment
from core.vocabulary.progress import Audits, Diverged, EpochEnd, Expectation, Progress, Settled, Summary
from core.vocabulary.state import MemberState, Run
from tests.app.cli.scripted_node import ME, OTHER, PROBLEM, plan

HALF = Progress(
    at_s=1.0, epoch=1, epochs=4, step=29, batch=9, steps_in_epoch=20, samples_s=1234.5, steps_s=10.0
)
UNKNOWN = Progress(at_s=1.0, epoch=0, epochs=1, step=6, batch=6)


def test_every_phase_has_its_words() -> None:
    for phase in (*phases.NEXT,):
        assert run_words.PHASES[phase]
    assert run_words.phase_words(phases.Stopped(by="an\x1b[1mna")) == "stopped on anna"
    assert run_words.phase_words(phases.Stopped()) == "stopped"
    assert run_words.phase_words(phases.Failed(problem=PROBLEM)) == "failed"


def test_a_member_says_what_it_does() -> None:
    assert run_words.member_words(MemberState()) == "waiting"
    coming = MemberState(phase="receiving", done=800_000_000, total=2_000_000_000)
    assert run_words.member_words(coming) == "receiving the files, 40 % of 2 GB"
    storing = replace(coming, words="putting files in place", done=2_000_000_000)
    assert run_words.member_words(storing) == "putting files in place, 100 % of 2 GB"
    for rate_bytes_s in (float("nan"), float("inf"), -1.0, 999.0):
        assert run_words.come_words(replace(coming, rate_bytes_s=rate_bytes_s)) == "40 % of 2 GB"
    at_full_speed = replace(coming, rate_bytes_s=100e6)
    assert run_words.come_words(at_full_speed) == "40 % of 2 GB, 100 MB/s, 12 s left"
    assert run_words.member_words(MemberState(phase="meeting", words="ben at x")).endswith(": ben at x")


def test_tasks_are_named_where_the_script_or_the_user_chose_roles() -> None:
    assert run_words.tasks_words(plan(), ME) == ""
    assert run_words.tasks_words(plan(OTHER), OTHER) == ""
    own = replace(plan(OTHER), strategy="own")
    assert run_words.tasks_words(own, OTHER) == "worker:0"
    twice = replace(own, strategy="managed", tasks=(*own.tasks, replace(own.tasks[-1], index=1)))
    assert run_words.tasks_words(twice, OTHER) == "worker:0 worker:1"


def test_the_loss_comes_first_and_validation_last() -> None:
    logs = {"accuracy": 0.5, "val_loss": 1.0, "loss": 0.25, "val_accuracy": 0.75}
    assert run_words.logs_words(logs) == "loss 0.2500, accuracy 0.5000, val_loss 1.0000, val_accuracy 0.7500"


@pytest.mark.parametrize(
    ("value", "shown"), [(0.0, "0.0000"), (1e-5, "1.000e-05"), (123456.0, "1.235e+05"), (float("nan"), "NaN")]
)
def test_numbers_are_short(value: float, shown: str) -> None:
    assert run_words.number(value) == shown


def test_progress_in_words() -> None:
    assert run_words.step_words(HALF) == "epoch 2/4, step 10/20"
    assert run_words.step_words(UNKNOWN) == "epoch 1/1, step 7"
    assert run_words.step_words(replace(UNKNOWN, epochs=0, batch=0)) == "step 7", "train_on_batch"
    assert run_words.fraction(HALF) == 0.375
    assert run_words.fraction(UNKNOWN) is None
    assert run_words.steps_left(HALF) == 50
    assert run_words.steps_left(UNKNOWN) is None
    assert run_words.rate_words(HALF) == "1,234 samples/s"
    assert run_words.rate_words(replace(HALF, samples_s=None)) == "10.0 steps/s"
    assert run_words.rate_words(UNKNOWN) == ""


def test_numbers_that_no_honest_trainer_says_break_nothing() -> None:
    for steps_s in (5e-324, -1.0):
        assert run_words.rate_words(replace(HALF, steps_s=steps_s)) == "1,234 samples/s"
    assert run_words.fraction(replace(HALF, batch=-(2**63))) == 0.0


def test_the_end_says_whether_the_weights_are_the_same() -> None:
    names = {ME: "here", OTHER: "other"}
    same = run_words.summary_lines(Summary(weights_sha256={ME: "ab" * 32, OTHER: "ab" * 32}), names, "")
    assert same == ["All laptops ended with the same weights: abababab"]
    differ = run_words.summary_lines(Summary(weights_sha256={ME: "ab" * 32, OTHER: "cd" * 32}), names, "")
    assert differ == ["The laptops' weights differ: here abababab, other cdcdcdcd"]
    assert run_words.summary_lines(Summary(weights_sha256={ME: "ab" * 32}), names, "") == []
    audited = run_words.summary_lines(Summary(audits=Audits(steps=1940, audited=21)), names, "")
    assert audited == ["21 of 1,940 shared steps were compared with one laptop's"]
    not_one = run_words.summary_lines(Summary(audits=Audits(steps=30, audited=0)), names, "")
    assert not_one == ["None of 30 shared steps was compared with one laptop's"]
    why = Audits(steps=30, audited=0, why="tf.print cannot be done twice")
    assert run_words.summary_lines(Summary(audits=why), names, "") == [
        "None of 30 shared steps was compared with one laptop's: tf.print cannot be done twice"
    ]
    some = run_words.summary_lines(
        Summary(audits=Audits(steps=90, audited=9, why="it runs eagerly")), names, ""
    )
    assert some == [
        "9 of 90 shared steps were compared with one laptop's (those of a model were not: it runs eagerly)"
    ]


def test_an_epoch_without_a_finite_value_has_its_time_alone() -> None:
    epoch = EpochEnd(at_s=1.0, epoch=0, epochs=2, step=19, logs={"loss": 0.5}, seconds=1.25)
    assert run_words.epoch_line(epoch) == "epoch 1/2: loss 0.5000 (1.2 s)"
    assert run_words.epoch_line(replace(epoch, logs={})) == "epoch 1/2 (1.2 s)"
    lost = replace(epoch, not_finite={"val_loss": "NaN", "mae": "-infinite"})
    assert run_words.epoch_line(lost) == "epoch 1/2: loss 0.5000, mae -infinite, val_loss NaN (1.2 s)"


def test_who_left_is_said_with_the_reason_and_who_goes_on() -> None:
    names = {ME: "here", OTHER: "other", DeviceId("x"): "third"}
    gone = MemberState(left=Problem(code="killed", what="Its trainer was killed."))
    run = Run(plan=plan(OTHER), phase=phases.Training(), members={ME: MemberState(), OTHER: gone})
    assert run_words.left_words(run, names) == ["other was lost: Its trainer was killed. here goes on alone."]
    assert run_words.member_words(gone) == "lost: Its trainer was killed."
    assert run_words.share_words(run, OTHER) == ""
    more = replace(run, members={**run.members, DeviceId("x"): MemberState()})
    both = ["other was lost: Its trainer was killed. here and third go on."]
    assert run_words.left_words(more, names) == both
    back = replace(run, phase=phases.Stopping(back=("other",)))
    assert run_words.left_words(back, names) == ["other was lost: Its trainer was killed."]
    said = run_words.summary_lines(Summary(left={OTHER: 1_812}), names, "")
    assert said == ["other took part for 1,812 steps; the run went on without it"]


def test_the_end_says_what_came_out() -> None:
    summary = Summary(
        first_step_s=9.5,
        total_s=65.0,
        epochs=8,
        steps=184,
        steps_s=101.2,
        last_logs={"loss": 0.1},
        outputs=("digits.keras", "trained/model.keras", "trained/notes.txt"),
    )
    assert run_words.summary_lines(summary, {DeviceId("x"): "x"}, "/runs/1") == [
        "loss 0.1000",
        "184 steps in 8 epochs, 101.2 steps/s, first step after 9.5 s, 1:05 total",
        "The trained model: /runs/1/outputs/trained/model.keras",
        "2 files written by the script: /runs/1/outputs",
    ]
    assert run_words.summary_lines(Summary(), {}, "") == []
    assert run_words.summary_lines(Summary(epochs=1, steps=23), {}, "") == ["23 steps in 1 epoch"]


def test_the_present_share_of_the_batch() -> None:
    def member(share: int | None, step_s: float | None = 0.1) -> MemberState:
        return MemberState(progress=replace(HALF, share=share, samples_s=640.0, step_s=step_s))

    fixed = replace(
        plan(OTHER), members=(Member(device=ME, name="me", share=3), Member(device=OTHER, name="o"))
    )
    run = Run(plan=fixed, phase=phases.Training(), members={ME: member(None), OTHER: MemberState()})
    assert run_words.share_words(run, ME) == "75 % of each batch"
    balanced = replace(run, plan=replace(fixed, balance=True))
    assert run_words.share_words(balanced, ME) == "", "not known yet"
    moving = replace(balanced, members={ME: member(50), OTHER: member(16)})
    assert run_words.share_words(moving, ME) == "50 of 64 rows"

    def later(share: int, **more: Any) -> MemberState:
        more = {"samples_s": 640.0, "step": HALF.step + 1, **more}
        return MemberState(progress=replace(HALF, share=share, step_s=0.1, **more))

    changing = replace(moving, members={ME: member(50), OTHER: later(30)})
    assert run_words.share_words(changing, OTHER) == "30 of 64 rows"
    assert run_words.share_words(changing, ME) == "34 of 64 rows", "together they are the batch"
    for newer in (later(20, fit=HALF.fit + 1), later(2, samples_s=100.0)):
        elsewhere = replace(moving, members={ME: member(50), OTHER: newer})
        assert run_words.share_words(elsewhere, ME) == "", "another batch tells nothing of this one"
    for odd in (member(65), member(-1), member(5, None), member(5, float("inf")), member(5, float("nan"))):
        assert run_words.share_words(replace(moving, members={**moving.members, ME: odd}), ME) == ""
    assert run_words.share_words(replace(moving, plan=replace(fixed, strategy="own")), ME) == ""


def test_the_end_says_what_was_expected_and_what_came_out() -> None:
    expectation = Expectation(alone_s=(0.1, 0.2), step_s=0.07, wire_s=0.01, wire_bytes=1, shares=(48, 16))
    summary = Summary(expectation=expectation, settled=Settled(step_s=0.2, wire_s=0.15))
    expected, advice = run_words.summary_lines(summary, {ME: "here"}, "", plan(OTHER))
    assert expected.startswith("Expected 1.4×, measured 0.5× the speed of here alone")
    assert "Or meet rarely (--sync rare: about 1.4× as fast, 1.2 to 1.7×); the result is then not" in advice
    assert run_words.summary_lines(summary, {}, "") == []


def test_an_epoch_whose_steps_are_done_resumes_at_the_next_one() -> None:
    moment = Moment(step=38 * 182, epoch=181, batch=38, epochs=181, steps_in_epoch=38)
    assert run_words.goes_on_words(moment) == "Resumes at epoch 183, step 1."
    assert run_words.goes_on_words(replace(moment, batch=37)) == "Resumes at epoch 182, step 38."
    assert run_words.goes_on_words(replace(moment, steps_in_epoch=None)) == "Resumes at epoch 182, step 39."


def test_a_loss_that_is_no_number_is_no_plain_finish() -> None:
    summary = Summary(diverged=Diverged(value="NaN", epoch=30, step=900))
    assert (
        run_words.outcome_words(phases.Finished(), summary) == "finished, but the loss became NaN in epoch 31"
    )
    assert run_words.outcome_words(phases.Stopped(by="ben"), summary) == "stopped on ben"


def test_rare_meetings_are_reported_with_every_result() -> None:
    summary = Summary(met_every=32)
    met = "met every 32 steps: not the result of one machine"
    assert run_words.outcome_words(phases.Finished(), summary) == f"finished, {met}"
    assert run_words.outcome_words(phases.Stopped(by="ben"), summary) == f"stopped on ben, {met}"
    assert run_words.difference_lines(summary, {}) == [met.capitalize()]


def test_gradients_sent_in_fewer_bits_are_reported_with_every_result() -> None:
    sent = "gradients sent in 8 bits: not the result of one machine"
    assert run_words.outcome_words(phases.Finished(), Summary(sent_bits=8)) == f"finished, {sent}"
    both = Summary(met_every=8, sent_bits=16)
    assert run_words.difference_lines(both, {}) == [
        "Met every 8 steps, gradients sent in 16 bits: not the result of one machine"
    ]


def test_rare_meetings_are_reported_beside_any_other_flaw() -> None:
    summary = Summary(met_every=32, told=("A metric is of the batch as a whole.",))
    differs = "finished, met every 32 steps, but not with the result of one machine"
    assert run_words.outcome_words(phases.Finished(), summary) == differs
    assert run_words.difference_lines(summary, {}) == [
        "Met every 32 steps: not the result of one machine",
        "Not as on one machine: A metric is of the batch as a whole.",
    ]
    accepted = replace(summary, accepted=True)
    met = "finished, met every 32 steps: not the result of one machine"
    assert run_words.outcome_words(phases.Finished(), accepted) == met
    nan = replace(accepted, diverged=Diverged(value="NaN", epoch=30, step=900))
    diverged = "finished, met every 32 steps, but the loss became NaN in epoch 31"
    assert run_words.outcome_words(phases.Finished(), nan) == diverged
