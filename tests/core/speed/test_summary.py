from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from core.speed.sentences import inexact_words, steps_words
from core.speed.summary import LEAST, MOST, MOST_TOLD, TOLD_LENGTH, Settling, Tally, counted, summary
from core.vocabulary import events as ev
from core.vocabulary.errors import Problem
from core.vocabulary.ids import DeviceId, ProjectId
from core.vocabulary.phases import Exit
from core.vocabulary.plan import Moment, Resumption
from core.vocabulary.progress import Audits, EpochEnd, EpochPart, Expectation, LogLines, Progress, Summary
from tests.core.cluster.laptops import ANNA, BEN, RUN, plan_of


def step(number: int, at_s: float, *, fit: int = 0, device: DeviceId = ANNA) -> ev.MemberProgressed:
    progress = Progress(at_s=at_s, fit=fit, epoch=0, epochs=1, step=number, batch=number, samples_s=64.0)
    return ev.MemberProgressed(run=RUN, device=device, progress=progress)


def tally(*events: tuple[ev.MirroredEvent, float]) -> Tally:
    known = Tally(chief=ANNA, pressed_s=10.0)
    for event, now_s in events:
        known = counted(known, event, now_s)
    return known


def test_a_run_without_events_has_an_empty_summary() -> None:
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


def test_a_resumed_run_takes_as_long_as_all_its_parts() -> None:
    resumed = Resumption(run=RUN, checkpoint=ProjectId("d"), moment=Moment(step=40), took_s=600.0)
    planned = ev.RunPlanned(plan=replace(plan_of(), resume=resumed))
    assert summary(tally((planned, 10.0), (step(0, 1.0), 20.0)), 30.0).total_s == 620.0


def test_the_end_of_an_epoch_is_part_of_the_training() -> None:
    epoch = EpochEnd(at_s=1.0, epoch=0, epochs=1, step=9, seconds=1.0)
    ended = ev.MemberEndedEpoch(run=RUN, device=ANNA, epoch=epoch)
    assert summary(tally((step(0, 1.0), 20.0), (ended, 25.0)), 30.0).train_s == 5.0


def test_the_step_at_which_a_member_left_is_kept_and_measurements_with_it_are_not() -> None:
    expectation = Expectation(alone_s=(0.1, 0.2), step_s=0.07, wire_s=0.01, wire_bytes=1, shares=(43, 21))
    left = ev.MemberLeft(run=RUN, device=BEN, problem=Problem(code="killed", what="It was killed."))
    done = summary(
        tally(
            (ev.MemberMeasured(run=RUN, device=ANNA, expectation=expectation), 19.0),
            (step(0, 1.0), 20.0),
            (step(7, 2.0), 21.0),
            (left, 22.0),
            (step(9, 3.0), 23.0),
        ),
        30.0,
    )
    assert (done.left, done.steps, done.expectation) == ({BEN: 8}, 10, None)


def test_one_step_alone_has_no_rate_of_steps_but_one_of_rows() -> None:
    done = summary(tally((step(0, 1.0), 20.0)), 30.0)
    assert (done.steps, done.steps_s, done.samples_s, done.train_s) == (1, None, 64.0, 0.0)


def test_the_rate_of_rows_is_the_mean_of_the_reports() -> None:
    silent = ev.MemberProgressed(
        run=RUN, device=ANNA, progress=Progress(at_s=2.0, epoch=0, epochs=1, step=1, batch=1)
    )
    slower = ev.MemberProgressed(
        run=RUN, device=ANNA, progress=replace(step(2, 3.0).progress, samples_s=32.0)
    )
    assert summary(tally((step(0, 1.0), 20.0), (silent, 21.0), (slower, 22.0)), 30.0).samples_s == 48.0


def test_nothing_else_is_known_about_a_run_that_has_not_begun() -> None:
    done = summary(tally(), 12.0)
    assert (done.steps, done.epochs, done.steps_s, done.samples_s, done.train_s) == (0, 0, None, None, None)


def test_only_the_chief_says_which_strategy_it_is() -> None:
    met = ev.MemberPhaseChanged(run=RUN, device=BEN, phase="training", strategy="Other")
    silent = ev.MemberPhaseChanged(run=RUN, device=ANNA, phase="stopping")
    first = ev.MemberPhaseChanged(run=RUN, device=ANNA, phase="training", strategy="Mirrored")
    assert summary(tally((first, 11.0), (met, 12.0), (silent, 13.0)), 14.0).strategy == "Mirrored"


def test_the_exchange_is_the_plans_and_empty_for_a_single_process() -> None:
    for plan, met in (
        (plan_of(), "tls"),
        (plan_of(strategy="own"), "sealed"),
        (plan_of((ANNA,)), ""),
    ):
        assert summary(tally((ev.RunPlanned(plan=plan), 11.0)), 12.0).exchange == met


def ended(device: DeviceId, task: str, digest: str, audits: Audits | None) -> ev.MemberEnded:
    exit = Exit(reason="finished" if digest else "script-error", weights_sha256=digest, audits=audits)
    return ev.MemberEnded(run=RUN, device=device, task=task, exit=exit)


def test_epochs_weights_and_the_strategy() -> None:
    epoch = EpochEnd(at_s=1.0, epoch=0, epochs=1, step=9, seconds=1.0, logs={"loss": 0.5})
    met = ev.MemberPhaseChanged(run=RUN, device=ANNA, phase="training", strategy="MirroredStrategy")
    done = summary(
        tally(
            (met, 11.0),
            (ev.MemberEndedEpoch(run=RUN, device=ANNA, epoch=epoch), 12.0),
            (ev.MemberEndedEpoch(run=RUN, device=BEN, epoch=epoch), 12.0),
            (ended(BEN, "worker:0", "a", Audits(steps=40, audited=6)), 13.0),
            (ended(ANNA, "chief:0", "b", Audits(steps=40, audited=7)), 13.0),
        ),
        14.0,
    )
    assert done.epochs == 1
    assert done.last_logs == {"loss": 0.5}
    assert done.weights_sha256 == {BEN: "a", ANNA: "b"}
    assert done.audits == Audits(steps=40, audited=7), "those that the chief tells"
    assert done.strategy == "MirroredStrategy"


def test_a_failed_run_tells_its_audits_too() -> None:
    audits = Audits(steps=40, audited=7)
    done = summary(
        tally((ended(ANNA, "chief:0", "", audits), 13.0), (ended(ANNA, "worker:0", "", None), 13.5)), 14.0
    )
    assert done.audits == audits and done.weights_sha256 == {}


def test_how_rarely_members_met_is_kept() -> None:
    rare = step(0, 1.0)
    rare = replace(rare, progress=replace(rare.progress, met_every=16))
    assert summary(tally((step(9, 1.0), 11.0)), 12.0).met_every == 0
    done = summary(tally((rare, 11.0), (step(0, 2.0, fit=1), 12.0)), 13.0)
    assert done.met_every == 16, "another fit's exact steps do not make the first one's exact"
    assert not done.differs, "whoever chose rare meetings has accepted them"
    assert inexact_words(done) == "met every 16 steps: not the result of one machine"


def test_the_fewest_bits_in_which_gradients_were_sent_are_kept() -> None:
    fits = [step(0, 1.0 + fit, fit=fit) for fit in range(3)]
    narrow = [
        replace(each, progress=replace(each.progress, sent_bits=bits))
        for each, bits in zip(fits, (16, 8, 0), strict=True)
    ]
    assert summary(tally((step(9, 1.0), 11.0)), 12.0).sent_bits == 0
    for some, bits, words in ((narrow[:1], 16, "16 bits"), (narrow, 8, "8 bits")):
        done = summary(tally(*((each, 11.0 + at) for at, each in enumerate(some))), 20.0)
        assert done.sent_bits == bits
        assert inexact_words(done) == f"gradients sent in {words}: not the result of one machine"
        assert not done.differs, "whoever chose fewer bits has accepted them"
    assert inexact_words(Summary()) == ""


EXPECTED = Expectation(
    alone_s=(0.04, 0.06), step_s=0.025, wire_s=0.005, wire_bytes=1_200_000, shares=(38, 26)
)


def report(number: int, step_s: float | None = 0.02, **more: object) -> Progress:
    made = Progress(at_s=number / 10, epoch=0, epochs=1, step=number, batch=number, step_s=step_s)
    return replace(made, **more)


def after(*reports: Progress, measured: bool = False) -> Settling:
    known = Settling(measured=measured)
    for each in reports:
        known = known.after(ANNA, each, chief=True)
    return known


def test_the_first_seconds_do_not_count() -> None:
    early = [report(n, 0.5, samples_s=10.0, wire_s=0.4) for n in range(30)]
    late = [report(n, 0.02, samples_s=3200.0, wire_s=0.004, wire_bytes=1_000) for n in range(30, 51)]
    settled = after(*early, *late).settled()
    assert settled is not None
    assert (settled.step_s, settled.samples_s, settled.wire_s, settled.wire_bytes) == (
        0.02,
        3200.0,
        0.004,
        1_000,
    )


def test_a_short_fit_gives_its_second_half() -> None:
    settled = after(*(report(n, 1.0 if n < 4 else 0.1) for n in range(8))).settled()
    assert settled is not None and settled.step_s == 0.1
    assert after().settled() is None
    assert after(report(0, None)).settled() is None


def test_single_slow_steps_change_nothing() -> None:
    times = [0.02] * 60
    times[45] = times[55] = 9.0
    settled = after(*(report(n, time_s) for n, time_s in enumerate(times))).settled()
    assert settled is not None and settled.step_s == 0.02


def test_an_epochs_last_batch_may_be_short_and_is_no_measure() -> None:
    whole = report(3, 0.02, share=48, steps_in_epoch=8)
    short = report(7, 0.001, share=3, steps_in_epoch=8)
    settled = after(whole, short).settled()
    assert settled is not None and (settled.step_s, settled.shares) == (0.02, {ANNA: 48})
    only = after(report(0, 0.02, steps_in_epoch=1)).settled()
    assert only is not None, "epochs of one batch have no other"


def test_each_members_rows_are_known_at_the_end() -> None:
    known = after(report(0, share=32), report(1, share=48)).after(BEN, report(1, share=16), chief=False)
    settled = known.settled()
    assert settled is not None and settled.shares == {ANNA: 48, BEN: 16}


def test_the_newest_fit_counts_unless_what_was_measured_goes_on() -> None:
    fits = tuple(
        report(n, 0.1 if fit == 0 else 0.2, fit=fit, at_s=fit + n / 10) for fit in (0, 1) for n in range(4)
    )
    newest = after(*fits).settled()
    assert newest is not None and newest.step_s == 0.2
    known = after(*fits, measured=True)
    assert len(known.reports) == 8, "a script that calls fit for each epoch trains one model all the same"
    assert after(*reversed(fits)).reports == fits[:3:-1], "what comes late of an earlier fit is left out"


def test_the_summary_has_the_expectation_and_the_result_of_that_fit() -> None:
    known = Tally(chief=ANNA, pressed_s=0.0)

    def hear(event: ev.MirroredEvent) -> None:
        nonlocal known
        known = counted(known, event, 1.0)

    hear(ev.MemberProgressed(run=RUN, device=ANNA, progress=report(0, 7.0)))
    hear(ev.MemberMeasured(run=RUN, device=ANNA, expectation=EXPECTED))
    assert summary(known, 2.0).expectation == EXPECTED
    assert summary(known, 2.0).settled is None
    for number in range(10):
        hear(ev.MemberProgressed(run=RUN, device=ANNA, progress=report(number, 0.03, fit=1, share=40)))
        hear(ev.MemberProgressed(run=RUN, device=BEN, progress=report(number, 0.9, fit=1, share=24)))
    done = summary(known, 3.0).settled
    again = counted(known, ev.RunPlanned(plan=plan_of()), 4.0)
    assert summary(again, 5.0).expectation is None, "of other members"
    assert summary(again, 5.0).settled is None, "of other members"
    assert done is not None and (done.step_s, done.shares) == (0.03, {ANNA: 40, BEN: 24})


def test_a_long_training_takes_no_more_memory() -> None:
    known = after(*(report(number, 0.01 + number * 1e-6) for number in range(20 * MOST)))
    assert MOST // 2 <= len(known.reports) <= MOST
    settled = known.settled()
    assert settled is not None and math.isclose(settled.step_s, 0.01 + 10 * MOST * 1e-6, rel_tol=0.05)


numbers = st.floats(allow_nan=True, allow_infinity=True) | st.none()


@given(st.lists(st.tuples(numbers, numbers, st.integers(-(2**63), 2**63 - 1)), max_size=3 * LEAST))
def test_whatever_is_reported_the_numbers_are_numbers(
    told: list[tuple[float | None, float | None, int]],
) -> None:
    reports = (
        report(n, step_s, samples_s=other, wire_s=other, wire_bytes=whole, share=whole, at_s=float(whole))
        for n, (step_s, other, whole) in enumerate(told)
    )
    settled = after(*reports).settled()
    if settled is not None:
        assert math.isfinite(settled.step_s) and settled.step_s > 0
        for value in (settled.samples_s, settled.wire_s, settled.wire_bytes, *settled.shares.values()):
            assert value is None or (math.isfinite(value) and value >= 0)


def test_five_steady_reports_are_enough_and_four_are_not() -> None:
    for steady, expected_s in ((5, 0.02), (4, 0.5)):
        reports = [report(n, 0.5) for n in range(30)] + [report(30 + n, 0.02) for n in range(steady)]
        settled = after(*reports).settled()
        assert settled is not None and settled.step_s == expected_s


def test_unreported_values_have_no_median() -> None:
    settled = after(*(report(n, 0.02, samples_s=-1.0 if n == 6 else 5.0) for n in range(8))).settled()
    assert settled is not None
    assert (settled.samples_s, settled.wire_s, settled.wire_bytes) == (None, None, None)


def test_steps_of_other_members_are_no_measure_of_the_run() -> None:
    known = Settling().after(BEN, report(0, share=16), chief=False)
    assert known.settled() is None and known.shares == ((BEN, 16),)


def test_an_impossible_share_is_left_out_and_zero_is_a_share() -> None:
    known = after(report(0, share=0)).after(BEN, report(1, share=-1), chief=False)
    assert known.shares == ((ANNA, 0),)


def test_a_new_fit_begins_with_nothing() -> None:
    known = after(*(report(n, 0.1, share=3) for n in range(3)), report(0, 0.2, fit=1))
    assert (known.fit, known.seen, len(known.reports), known.shares) == (1, 1, 1, ())


def epoch_end(number: int, done: int, planned: int | None = 10, loss: float = 0.5) -> ev.MemberEndedEpoch:
    whole = done == planned
    epoch = EpochEnd(
        at_s=float(number),
        epoch=number,
        epochs=9,
        step=number,
        seconds=1.0,
        logs={"loss": loss},
        whole=whole,
        steps=done,
        steps_in_epoch=planned,
    )
    return ev.MemberEndedEpoch(run=RUN, device=ANNA, epoch=epoch)


def test_an_epoch_that_was_broken_off_is_recorded_as_what_it_was() -> None:
    done = summary(tally((step(34, 1.0), 20.0), (epoch_end(0, 35, 2000, loss=0.7), 25.0)), 30.0)
    assert (done.epochs, done.steps, done.part) == (0, 35, EpochPart(steps=35, steps_in_epoch=2000))
    assert done.last_logs == {"loss": 0.7}
    assert steps_words(done) == "35 of 2,000 steps of the first epoch"


def test_the_logs_of_a_few_steps_do_not_replace_those_of_a_whole_epoch() -> None:
    heard = ((step(9, 1.0), 20.0), (epoch_end(0, 10, loss=0.4), 25.0), (epoch_end(1, 1, loss=0.0), 26.0))
    done = summary(tally(*heard), 30.0)
    assert done.last_logs == {"loss": 0.4}
    assert (done.epochs, done.part) == (1, EpochPart(steps=1, steps_in_epoch=10))
    assert steps_words(done) == "10 steps in 1.1 epochs"


def test_an_epoch_whose_end_was_never_reported_ends_at_its_last_step() -> None:
    progress = replace(step(13, 2.0).progress, epoch=1, batch=3, steps_in_epoch=10)
    killed = ev.MemberProgressed(run=RUN, device=ANNA, progress=progress)
    done = summary(tally((step(9, 1.0), 20.0), (epoch_end(0, 10), 21.0), (killed, 22.0)), 30.0)
    assert done.part == EpochPart(steps=4, steps_in_epoch=10)
    assert summary(tally((step(9, 1.0), 20.0), (epoch_end(0, 10), 21.0)), 30.0).part is None


def test_a_resumed_run_counts_from_where_the_earlier_one_was() -> None:
    moment = Moment(step=35, epoch=3, batch=5, epochs=3)
    plan = replace(plan_of(), resume=Resumption(run=RUN, checkpoint=ProjectId("c"), moment=moment))
    first = replace(step(35, 1.0).progress, done=36)
    last = replace(step(39, 3.0).progress, done=40)
    heard: list[tuple[ev.MirroredEvent, float]] = [
        (ev.RunPlanned(plan=plan), 11.0),
        *((ev.MemberProgressed(run=RUN, device=ANNA, progress=each), 12.0) for each in (first, last)),
        (epoch_end(3, 10), 13.0),
    ]
    done = summary(tally(*heard), 30.0)
    assert (done.steps, done.epochs, done.steps_s) == (40, 4, 2.0)
    assert steps_words(done) == "40 steps in 4 epochs"


def told(words: str, *, difference: bool = True, device: DeviceId = ANNA) -> ev.MemberLogged:
    lines = LogLines(task="chief:0", stream="tandem", text=words, difference=difference)
    return ev.MemberLogged(run=RUN, device=device, lines=lines)


def test_each_reported_difference_is_kept_once_and_other_messages_are_not() -> None:
    said = told("The metric 'rmse' differs."), told("The metric 'rmse' differs.", device=BEN)
    heard = tally(*((event, 11.0) for event in (*said, told("jit_compile is left out.", difference=False))))
    out = summary(heard, 12.0)
    assert out.told == ("The metric 'rmse' differs.",)
    assert out.differs and not Summary().differs


def test_differences_accepted_in_advance_are_reported_but_do_not_count() -> None:
    accepting = ev.RunPlanned(plan=replace(plan_of(), accept_differences=True))
    out = summary(tally((accepting, 11.0), (told("It differs."), 12.0)), 13.0)
    assert (out.told, out.accepted, out.differs) == (("It differs.",), True, False)


def test_the_differences_that_a_peer_reports_are_limited() -> None:
    heard = tally(*((told(f"{number} " + "x" * 5000), 11.0) for number in range(99)))
    kept = summary(heard, 12.0).told
    assert len(kept) == MOST_TOLD and max(map(len, kept)) <= TOLD_LENGTH
