import io

import pytest
from msgspec.structs import replace
from rich.console import Console

from app.cli.run_display import PACE_S, PLAIN_EVERY_S, FetchLines, Moving, Plain, picture
from app.models import headline
from app.models.paces import Paces
from core.vocabulary import events as ev
from core.vocabulary import phases
from core.vocabulary.errors import Problem
from core.vocabulary.ids import DeviceId, ProjectId, RunId
from core.vocabulary.plan import Moment, Resumption
from core.vocabulary.progress import EpochEnd, Expectation, Progress
from core.vocabulary.readings import Reading
from core.vocabulary.state import State, apply
from core.vocabulary.waits import Cause, WaitsFor
from tests.app import world
from tests.app.cli.scripted_node import ME, OTHER, RUN, ScriptedNode, Words, linked, paired, plan
from tests.app.words.test_run_words import HALF
from tests.core.samples import sample


class Clock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def epoch(device: DeviceId) -> ev.MemberEndedEpoch:
    end = EpochEnd(at_s=1.0, epoch=0, epochs=2, step=19, logs={"loss": 0.5}, seconds=1.25)
    return ev.MemberEndedEpoch(run=RUN, device=device, epoch=end)


def running() -> ScriptedNode:
    node = ScriptedNode()
    node.happen(paired())
    node.happen(ev.RunPlanned(plan=plan(OTHER)))
    return node


def play(node: ScriptedNode, display: Plain | Moving, *events: ev.Event) -> None:
    leave = node.subscribe(display.on_event)
    with display:
        for event in events:
            node.happen(event)
    leave()


def test_plain_lines_tell_now_and_then_how_much_came_how_fast() -> None:
    screen, clock, node = Words(), Clock(), running()
    leave = node.subscribe(Plain(screen, clock).on_event)
    for second in range(25):
        clock.now_s = float(second)
        coming = ev.MemberPhaseChanged(
            run=RUN,
            device=OTHER,
            phase="receiving",
            done=second * 10_000_000,
            total=400_000_000,
            rate_bytes_s=10e6 if second else 0.0,
        )
        node.happen(coming)
    leave()
    assert screen.said.splitlines() == [
        "other: receiving the files, 0 % of 400 MB",
        "other: receiving the files, 25 % of 400 MB, 10 MB/s, 30 s left",
        "other: receiving the files, 50 % of 400 MB, 10 MB/s, 20 s left",
    ]


def test_plain_lines_tell_each_thing_once() -> None:
    screen = Words()
    play(
        running(),
        Plain(screen, Clock()),
        ev.RunPhaseChanged(run=RUN, phase=phases.Preparing()),
        ev.MemberPhaseChanged(run=RUN, device=OTHER, phase="receiving", done=1, total=10),
        ev.MemberPhaseChanged(run=RUN, device=OTHER, phase="receiving", done=2, total=10),
        ev.MemberPhaseChanged(run=RUN, device=OTHER, phase="prepared"),
        epoch(ME),
        epoch(OTHER),
    )
    assert screen.said.splitlines() == [
        "preparing",
        "other: receiving the files, 10 % of 10 bytes",
        "other: ready",
        "here: epoch 1/2: loss 0.5000 (1.2 s)",
    ]


EXPECTED = Expectation(alone_s=(0.1, 0.1), step_s=0.06, wire_s=0.0132, wire_bytes=1_200_000, shares=(48, 16))
SENTENCE = (
    "Two laptops: about 1.7× as fast as here alone; 22 % of each step is network transfer (1.2 MB each way)."
)


def test_what_is_expected_is_said_as_soon_as_it_is_measured() -> None:
    for display in (Plain, Moving):
        screen = Words()
        screen.console.width = 200
        play(running(), display(screen, Clock()), world.measured(EXPECTED))
        assert SENTENCE in screen.said
    screen = Words()
    play(running(), Plain(screen, Clock()), world.measured(replace(EXPECTED, step_s=0.3, wire_s=0.2)))
    assert "3.0× slower than" in screen.said
    assert "Use a cable or a faster network. Or train on here alone" in screen.said


def test_rows_that_move_are_shown() -> None:
    node = running()
    for device, share in ((ME, 50), (OTHER, 14)):
        node.happen(ev.MemberPhaseChanged(run=RUN, device=device, phase="training"))
        node.happen(
            ev.MemberProgressed(
                run=RUN, device=device, progress=replace(HALF, share=share, samples_s=640.0, step_s=0.1)
            )
        )
    assert node.state.run is not None
    out = io.StringIO()
    Console(file=out, width=200).print(picture(node.state.run, {ME: "here", OTHER: "other"}, 65.0))
    assert "50 of 64 rows" in out.getvalue()
    assert "chief" not in out.getvalue(), "nobody chose roles"
    screen, clock = Words(), Clock()
    display = Plain(screen, clock)
    clock.now_s = 11.0
    play(
        node,
        display,
        ev.MemberProgressed(
            run=RUN, device=ME, progress=replace(HALF, share=51, samples_s=640.0, step_s=0.1)
        ),
    )
    assert "51 of 64 rows" in screen.said


def test_a_long_epoch_gives_a_sign_of_life() -> None:
    screen, clock = Words(), Clock()
    node = running()
    display = Plain(screen, clock)
    step = ev.MemberProgressed(run=RUN, device=ME, progress=HALF)
    play(node, display, ev.MemberPhaseChanged(run=RUN, device=ME, phase="training"), step, step)
    assert "step" not in screen.said
    clock.now_s = 11.0
    play(node, display, step, step)
    assert screen.said.splitlines()[1:] == ["here: epoch 2/4, step 10/20   (1,234 samples/s)"]


def test_the_time_left_is_the_range_that_the_window_shows() -> None:
    """Once per run, not per laptop, and not before enough is known."""
    screen, clock, node = Words(), Clock(), running()
    display, heard = Plain(screen, clock), Paces(PACE_S, clock)
    for phase in (phases.Preparing(), phases.Starting(), phases.Training()):
        node.happen(ev.RunPhaseChanged(run=RUN, phase=phase))
    node.happen(ev.MemberPhaseChanged(run=RUN, device=ME, phase="training"))
    for number in range(30):  # ten a second, of which every fifth counts
        clock.now_s = 0.1 * number
        progress = replace(HALF, step=number, batch=number, step_s=0.1, steps_s=10.0 if number % 10 else 5.0)
        play(node, display, ev.MemberProgressed(run=RUN, device=ME, progress=progress))
        assert node.state.run is not None
        heard.hear(node.state.run)
    assert len(heard.recent) == 6
    clock.now_s = 20.0
    play(node, display, ev.MemberProgressed(run=RUN, device=OTHER, progress=HALF))
    assert screen.said.splitlines()[-1].endswith("(1,234 samples/s; 0:03–0:06 left)")
    run = node.state.run
    assert run is not None
    left = headline.figures(run, ME, heard.recent)[2]
    assert left.value == "0:03–0:06"
    out = io.StringIO()
    names = {ME: "here", OTHER: "other"}
    Console(file=out, width=140).print(picture(run, names, 65.0, heard.recent))
    assert out.getvalue().count("left") == 1
    assert out.getvalue().splitlines()[0].strip() == "digits.py: training, 1:05, 0:03–0:06 left"
    screen.out.truncate(0)
    heard.recent.popleft()
    Console(file=screen.out, width=140).print(picture(run, names, 65.0, heard.recent))
    assert "left" not in screen.said, "five reports are no more than a guess"


def test_the_chiefs_output_and_tandems_words_are_shown_without_escapes() -> None:
    screen = Words()
    play(
        running(),
        Plain(screen, Clock()),
        world.logged(ME, "1/2\r2/2 \x1b[31mdone\n"),
        world.logged(ME, "noise\n", stream="stderr"),
        world.logged(OTHER, "the same again\n", "worker:0"),
        world.logged(OTHER, "jit is off\n", "worker:0", "tandem"),
    )
    assert screen.said.splitlines() == ["here | 2/2 done", "other | jit is off"]


def test_the_moving_picture_shows_each_member() -> None:
    node = running()
    for event in (
        ev.MemberPhaseChanged(run=RUN, device=ME, phase="training"),
        ev.MemberProgressed(run=RUN, device=ME, progress=HALF),
    ):
        node.happen(event)
    assert node.state.run is not None
    out = io.StringIO()
    shown = picture(node.state.run, {ME: "here", OTHER: "other"}, 65.0)
    Console(file=out, width=140).print(shown)
    head, mine, others = out.getvalue().splitlines()
    assert head.strip() == "digits.py: planning, 1:05"
    assert "epoch 2/4, step 10/20" in mine
    assert "1,234 samples/s" in mine
    assert "waiting" in others


def test_the_moving_display_prints_the_script_above_itself() -> None:
    screen = Words()
    screen._console = Console(file=screen.out, force_terminal=True, width=100)
    step = Progress(at_s=1.0, epoch=0, epochs=1, step=0, batch=0)
    play(
        running(),
        Moving(screen, Clock()),
        world.logged(ME, "hello\n"),
        ev.MemberProgressed(run=RUN, device=ME, progress=step),
    )
    assert "here | hello" in screen.said


def test_a_run_that_goes_on_shows_the_time_of_all_its_parts() -> None:
    screen, clock, node = Words(), Clock(), running()
    screen._console = Console(file=screen.out, force_terminal=True, width=100)
    moving = Moving(screen, clock)
    leave = node.subscribe(moving.on_event)
    with moving:
        node.happen(ev.RunPhaseChanged(run=RUN, phase=phases.Stopped(by="here", goes_on=True)))
        clock.now_s = 700.0
        resumed = Resumption(run=RUN, checkpoint=ProjectId("d"), moment=Moment(step=40), took_s=600.0)
        node.happen(ev.RunPlanned(plan=replace(plan(OTHER), run=RunId("next"), resume=resumed)))
        clock.now_s = 705.0
        node.happen(ev.RunPhaseChanged(run=RunId("next"), phase=phases.Preparing()))
    leave()
    assert "10:05" in screen.said


def test_the_moving_display_says_how_long_ago_a_laptop_left() -> None:
    screen, clock, node = Words(), Clock(), running()
    screen._console = Console(file=screen.out, force_terminal=True, width=140)
    moving = Moving(screen, clock)
    leave = node.subscribe(moving.on_event)
    with moving:
        for phase in (phases.Preparing(), phases.Starting(), phases.Training()):
            node.happen(ev.RunPhaseChanged(run=RUN, phase=phase))
        node.happen(
            ev.MemberLeft(run=RUN, device=OTHER, problem=Problem(code="killed", what="it was killed."))
        )
        clock.now_s = 125.0
    leave()
    assert "lost: it was killed. (2 min ago)" in screen.said


def lender() -> State:
    node = ScriptedNode()
    node.happen(paired(name="Ben\x1b[2J"))
    node.happen(linked(name="Ben\x1b[2J"))
    return node.state


def test_the_first_piece_the_last_one_and_a_few_between_are_reported() -> None:
    screen, clock = Words(), Clock()
    fetch = FetchLines(screen, clock)
    for megabytes in (0, 1, 2):
        fetch(world.came(megabytes * 1_000_000), lender())
    clock.now_s += PLAIN_EVERY_S
    fetch(world.came(3_000_000), lender())
    fetch(world.came(4_000_000), lender())
    fetch(world.came(70_500_000), lender())
    assert screen.said.splitlines() == [
        f"Fetching the checkpoint from Ben: {done} of 70.5 MB." for done in ("0 bytes", "3 MB", "70.5 MB")
    ]


def test_files_that_take_long_to_read_are_reported_now_and_then() -> None:
    screen, clock = Words(), Clock()
    tell = FetchLines(screen, clock)
    for done in (500, 600):
        tell(ev.FilesRead(script="train.py", done=done * 1_000_000, total=2_000_000_000), lender())
    clock.now_s += PLAIN_EVERY_S
    tell(ev.FilesRead(script="train.py", done=1_500_000_000, total=2_000_000_000), lender())
    tell(ev.FilesRead(script="train.py", done=0, total=0), lender())
    assert screen.said.splitlines() == [
        f"Reading the files: {done} of 2 GB." for done in ("500 MB", "1.5 GB")
    ]


def test_how_far_the_files_of_a_laptop_are_that_is_to_join_is_reported_now_and_then() -> None:
    screen, clock = Words(), Clock()
    tell = FetchLines(screen, clock)

    def come(megabytes: int, total: int = 2_000) -> None:
        state, size = lender(), 1_000_000
        (device,) = state.devices
        event = ev.JoinProgressed(
            device=device, done=megabytes * size, total=total * size, rate_bytes_s=2e6 if megabytes else 0.0
        )
        tell(event, apply(state, event))

    for megabytes in (0, 100, 200):
        come(megabytes)
    clock.now_s += PLAIN_EVERY_S
    come(1_000)
    come(0, 0)
    assert screen.said.splitlines() == [
        "Ben will join the run, and is receiving the files: 0 % of 2 GB.",
        "Ben will join the run, and is receiving the files: 50 % of 2 GB, 2 MB/s, 8 min left.",
    ]


def test_that_a_laptop_that_is_to_join_checks_its_own_files_is_no_receiving() -> None:
    screen, state = Words(), lender()
    (device,) = state.devices
    event = ev.JoinProgressed(device=device, done=10**9, total=2 * 10**9, words="checking files")
    FetchLines(screen, Clock())(event, apply(state, event))
    assert screen.said == "Ben will join the run, and is checking files: 50 % of 2 GB.\n"


def test_that_another_laptop_sends_now_is_reported_at_once() -> None:
    screen = Words()
    fetch = FetchLines(screen, Clock())
    fetch(world.came(0), lender())
    other = DeviceId("c" * 64)
    fetch(type(world.came(0))(run=world.RUN, device=other, done=0, total=1_000), lender())
    assert "from cccccccc" in screen.said.splitlines()[-1]


def waits(lasted_s: float, cause: Cause = "stopped") -> ev.WaitingChanged:
    return ev.WaitingChanged(run=RUN, waits=(WaitsFor(device=OTHER, cause=cause, lasted_s=lasted_s),))


def test_a_wait_is_printed_when_it_changes_and_now_and_then() -> None:
    screen, clock, node = Words(), Clock(), running()
    display = Plain(screen, clock)
    play(node, display, waits(2.0), waits(7.0))
    assert len(screen.said.splitlines()) == 1 and "stopped for 2 s" in screen.said
    clock.now_s += PLAIN_EVERY_S
    play(node, display, waits(12.0), waits(13.0, "away"), ev.WaitingChanged(run=RUN))
    _, later, away, on = screen.said.splitlines()
    assert "stopped for 12 s" in later and "away" in away
    assert on == "The run continues."


def test_that_it_goes_on_is_said_only_where_it_was_said_to_wait() -> None:
    screen = Words()
    play(running(), Plain(screen, Clock()), ev.WaitingChanged(run=RUN))
    assert screen.said == ""


def test_the_moving_display_shows_whom_the_run_waits_for() -> None:
    node = running()
    node.happen(waits(2.0))
    assert node.state.run is not None
    console = Console(file=io.StringIO(), width=120)
    console.print(picture(node.state.run, {ME: "Anna", OTHER: "Ben"}, 3.0))
    assert "Waiting for Ben: its training process" in console.file.getvalue()  # type: ignore[attr-defined]


@pytest.mark.parametrize("kind", [Plain, Moving])
def test_what_closing_the_lid_does_is_said_once_it_trains_and_when_that_changes(
    kind: type[Plain | Moving],
) -> None:
    screen = Words()
    screen._console = Console(file=screen.out, force_terminal=kind is Moving, width=200)
    reading = ev.TelemetryReported(device=ME, reading=replace(sample(Reading), has_battery=True))
    step = Progress(at_s=1.0, epoch=0, epochs=9, step=0, batch=0)
    node = ScriptedNode()
    node.happen(paired())
    node.happen(ev.RunPlanned(plan=replace(plan(OTHER), exchange="tls")))
    play(
        node,
        kind(screen, Clock()),
        reading,
        *(
            ev.RunPhaseChanged(run=RUN, phase=phase)
            for phase in (phases.Preparing(), phases.Starting(), phases.Training())
        ),
        ev.MemberProgressed(run=RUN, device=ME, progress=step),
        reading,
        ev.MemberLeft(run=RUN, device=OTHER, problem=Problem(code="killed", what="It was killed.")),
        reading,
    )
    said = [line for line in screen.said.splitlines() if "If you close the lid" in line]
    assert len(said) == 2, said
    assert "other goes on without it" in said[0] and "The training pauses" in said[1]
