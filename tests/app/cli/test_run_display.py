import io

from rich.console import Console

from app.cli.run_display import Moving, Plain, picture
from core import events as ev
from core.ids import DeviceId
from core.run import phases
from core.run.reports import EpochEnd, LogLines, Progress
from tests.app.cli.scripted_node import ME, OTHER, RUN, ScriptedNode, Words, paired, plan
from tests.app.test_run_words import HALF


class Clock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def epoch(device: DeviceId) -> ev.MemberEndedEpoch:
    end = EpochEnd(at_s=1.0, epoch=0, epochs=2, step=19, logs={"loss": 0.5}, seconds=1.25)
    return ev.MemberEndedEpoch(run=RUN, device=device, epoch=end)


def logged(device: DeviceId, task: str, stream: str, text: str) -> ev.MemberLogged:
    return ev.MemberLogged(run=RUN, device=device, lines=LogLines(task=task, stream=stream, text=text))


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
        "preparing: consent and files",
        "other: receives the files, 10 %",
        "other: is ready",
        "here: epoch 1/2: loss 0.5000 (1.2 s)",
    ]


def test_a_long_epoch_gives_a_sign_of_life() -> None:
    screen, clock = Words(), Clock()
    node = running()
    display = Plain(screen, clock)
    step = ev.MemberProgressed(run=RUN, device=ME, progress=HALF)
    play(node, display, ev.MemberPhaseChanged(run=RUN, device=ME, phase="training"), step, step)
    assert "step" not in screen.said
    clock.now_s = 11.0
    play(node, display, step, step)
    assert screen.said.splitlines()[1:] == ["here: epoch 2/4, step 10/20   (1,234 samples/s, 0:05 left)"]


def test_the_chiefs_output_and_tandems_words_are_shown_without_escapes() -> None:
    screen = Words()
    play(
        running(),
        Plain(screen, Clock()),
        logged(ME, "chief:0", "stdout", "1/2\r2/2 \x1b[31mdone\n"),
        logged(ME, "chief:0", "stderr", "noise\n"),
        logged(OTHER, "worker:0", "stdout", "the same again\n"),
        logged(OTHER, "worker:0", "tandem", "jit is off\n"),
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
    assert "chief:0" in mine
    assert "epoch 2/4, step 10/20" in mine
    assert "1,234 samples/s" in mine
    assert "worker:0" in others
    assert "waits" in others


def test_the_moving_display_prints_the_script_above_itself() -> None:
    screen = Words()
    screen._console = Console(file=screen.out, force_terminal=True, width=100)
    step = Progress(at_s=1.0, epoch=0, epochs=1, step=0, batch=0)
    play(
        running(),
        Moving(screen, Clock()),
        logged(ME, "chief:0", "stdout", "hello\n"),
        ev.MemberProgressed(run=RUN, device=ME, progress=step),
    )
    assert "here | hello" in screen.said
