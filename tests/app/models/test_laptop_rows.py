"""A row for each laptop of a run."""

from msgspec.structs import replace

from app.models.laptop_rows import rows, why_no_gpu
from core.vocabulary import events as ev
from core.vocabulary.errors import Problem
from core.vocabulary.phases import Exit
from core.vocabulary.state import State, apply
from tests.app import world
from tests.core.fake_node import ME, OTHER, started

NAMES = {ME: "anna", OTHER: "ben"}


def after(*events: ev.Event) -> State:
    state = State()
    for event in (started(), *world.linked(), *world.begun(), *events):
        state = apply(state, event)
    return state


def test_a_row_has_role_share_use_and_what_it_waits() -> None:
    state = after(
        world.told(ME, world.reading(gpus=(world.gpu(62),))), world.progressed(ME, world.progress(3))
    )
    assert state.run is not None
    row = rows(state.run, state, NAMES)[ME]
    assert (row.name, row.role, row.share) == ("anna", "this laptop", "75 % of each batch")
    assert (row.gpu.words, row.gpu.note) == ("62 %", "5.4 of 8.6 GB · 71 °C · 60 W")
    assert (row.cpu.words, row.cpu.note) == ("40 %", "9.7 of 17.2 GB")
    assert (row.waiting, row.state) == ("10 of 100 ms", "Training")
    assert row.about == (
        "anna (75 % of each batch): training; "
        "GPU 62 %, 5.4 of 8.6 GB · 71 °C · 60 W, CPU 40 %, waits 10 of 100 ms"
    )


def test_a_laptop_that_is_away_shows_no_old_reading() -> None:
    known = world.told(OTHER, world.reading())
    for events, words in ((known,), "40 %"), ((known, world.lost()), ""):
        state = after(*events)
        assert state.run is not None
        assert rows(state.run, state, NAMES)[OTHER].cpu.words == words


def test_the_task_is_named_where_the_script_brings_its_own_cluster() -> None:
    state = State()
    for event in (started(), *world.linked(), *world.begun(world.plan(strategy="own"))):
        state = apply(state, event)
    assert state.run is not None
    assert rows(state.run, state, NAMES)[ME].role == "chief:0 · this laptop"


def test_a_card_that_does_not_say_its_use_says_why() -> None:
    state = after(world.told(OTHER, world.reading(gpus=(world.gpu(None, "the driver needs root"),))))
    assert state.run is not None
    gpu = rows(state.run, state, NAMES)[OTHER].gpu
    assert (gpu.part, gpu.words, gpu.note) == (None, "not known", "the driver needs root")


def test_a_trainer_that_broke_stands_out() -> None:
    broken = Exit(reason="killed", problem=Problem(code="killed", what="It was killed.", fix="Look."))
    state = after(ev.MemberEnded(run=world.RUN, device=OTHER, task="worker:0", exit=broken))
    assert state.run is not None
    found = rows(state.run, state, NAMES)
    assert found[OTHER].troubled and not found[ME].troubled


def test_a_laptop_that_left_says_why_and_has_no_share() -> None:
    left = ev.MemberLeft(run=world.RUN, device=OTHER, problem=Problem(code="closed", what="It was closed."))
    state = after(left)
    assert state.run is not None
    row = rows(state.run, state, NAMES)[OTHER]
    assert (row.state, row.detail, row.share, row.troubled) == ("Left", "It was closed.", "", True)
    lost = replace(left, problem=Problem(code="killed", what="Its trainer was killed."))
    state = after(lost)
    assert state.run is not None and rows(state.run, state, NAMES)[OTHER].state == "Lost"


def test_why_there_is_no_gpu_use_is_said_once() -> None:
    state = after(world.told(ME, world.reading(no_gpu="CPU only: no NVIDIA driver.")))
    assert state.run is not None
    assert why_no_gpu(state.run, state, NAMES) == "No GPU use to plot: no NVIDIA driver."
    state = apply(state, world.told(OTHER, world.reading(gpus=(world.gpu(None, "it needs root"),))))
    assert state.run is not None
    assert why_no_gpu(state.run, state, NAMES) == (
        "No GPU use to plot. anna: no NVIDIA driver; ben: it needs root."
    )
    state = apply(state, world.told(OTHER, world.reading(gpus=(world.gpu(5),))))
    assert state.run is not None
    assert why_no_gpu(state.run, state, NAMES) == ""
