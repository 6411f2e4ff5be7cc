"""How a run starts, step by step."""

from msgspec.structs import replace

from app.models.startup import Startup, awaited, starting_up, to_allow
from core.vocabulary.ids import RunId
from core.vocabulary.phases import MemberPhase, Preparing, Starting, Training
from core.vocabulary.state import MemberState, Run
from tests.app import world
from tests.core.fake_node import ME, OTHER

NAMES = {ME: "anna", OTHER: "ben"}


def run(mine: MemberPhase, other: MemberPhase, *, starting: bool = False, **how: int) -> Run:
    members = {ME: MemberState(phase=mine), OTHER: MemberState(phase=other, **how)}  # type: ignore[arg-type]
    return Run(plan=world.plan(), phase=Starting() if starting else Preparing(), members=members)


def alone(phase: MemberPhase) -> Run:
    plan = world.plan(members=((ME, "anna", 1),))
    return Run(plan=plan, phase=Starting(), members={ME: MemberState(phase=phase)})


def test_each_step_says_how_long_it_took() -> None:
    now_s = [100.0]
    startup = Startup(lambda: now_s[0])
    startup.hear(run("prepared", "consent"))
    now_s[0] = 112.0
    assert [(step.name, step.state, step.took_s) for step in startup.steps(run("prepared", "consent"))] == [
        ("Allowed", "now", 12.0),
        ("Files", "ahead", None),
        ("TensorFlow", "ahead", None),
        ("Connected", "ahead", None),
        ("First step", "ahead", None),
    ]
    startup.hear(run("prepared", "receiving"))
    now_s[0] = 115.0
    startup.hear(run("starting", "starting", starting=True))
    now_s[0] = 121.0
    startup.hear(run("training", "meeting", starting=True))
    now_s[0] = 123.0
    startup.hear(run("training", "training", starting=True))
    now_s[0] = 130.0
    steps = startup.steps(run("training", "training", starting=True))
    assert [step.took_s for step in steps] == [12.0, 3.0, 6.0, 2.0, 7.0]
    over = replace(run("training", "training"), phase=Training())
    startup.hear(over)
    now_s[0] = 200.0
    assert [step.took_s for step in startup.steps(over)] == [12.0, 3.0, 6.0, 2.0, 7.0]
    assert {step.state for step in startup.steps(over)} == {"done"}


def test_a_stage_that_nobody_saw_has_no_time() -> None:
    """A window that opens midway through a run."""
    startup = Startup(lambda: 5.0)
    startup.hear(run("meeting", "starting", starting=True))
    assert [step.took_s for step in startup.steps(run("meeting", "starting", starting=True))] == [None] * 5


def test_a_step_that_is_done_is_not_undone() -> None:
    startup = Startup(lambda: 5.0)
    startup.hear(run("training", "training", starting=True))
    startup.hear(run("starting", "training", starting=True))
    assert [step.state for step in startup.steps(run("starting", "training"))][:4] == ["done"] * 4


def test_the_next_run_begins_afresh() -> None:
    now_s = [0.0]
    startup = Startup(lambda: now_s[0])
    startup.hear(run("training", "training", starting=True))
    second = run("waiting", "waiting")
    second = replace(second, plan=replace(second.plan, run=RunId("second")))
    startup.hear(second)
    now_s[0] = 4.0
    assert startup.steps(second)[0] == ("Allowed", "now", 4.0)


def test_one_laptop_alone_asks_nobody_and_meets_nobody() -> None:
    startup = Startup(lambda: 0.0)
    startup.hear(alone("starting"))
    assert [step.name for step in startup.steps(alone("starting"))] == ["TensorFlow", "First step"]


def test_what_it_waits_for() -> None:
    assert awaited(run("prepared", "consent"), NAMES) == "someone to press Allow on ben"
    assert to_allow(run("prepared", "consent")) == [OTHER]
    assert awaited(run("prepared", "waiting"), NAMES) == "an answer from ben"
    assert (
        awaited(run("prepared", "receiving", done=1, total=4), NAMES)
        == "the files to reach ben (25 % of 4 bytes)"
    )
    assert awaited(run("waiting", "waiting"), NAMES) == "an answer from ben"
    reaching = awaited(run("waiting", "receiving", done=1, total=4), NAMES)
    assert reaching == "the files to reach ben (25 % of 4 bytes)", "nobody has to allow anna her own script"
    assert awaited(run("waiting", "prepared"), NAMES) == "the files to be read on anna"
    assert awaited(run("starting", "prepared", starting=True), NAMES) == "TensorFlow to start on anna and ben"
    assert awaited(run("meeting", "training", starting=True), NAMES) == "anna to meet the others"
    assert awaited(run("training", "training", starting=True), NAMES).startswith("the first step")
    assert not starting_up(replace(run("training", "training"), phase=Training()))
    assert ME not in to_allow(run("training", "training"))
