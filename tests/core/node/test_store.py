"""Events become the state, and everybody hears them in one order."""

from core.node.store import Chronicle
from core.vocabulary import events as ev
from core.vocabulary import phases
from core.vocabulary.errors import Problem
from core.vocabulary.state import State
from tests.core.fake_node import OTHER, found, started
from tests.core.vocabulary.test_state import RUN

Heard = list[tuple[str, bool]]


def begun() -> Chronicle:
    chronicle = Chronicle()
    chronicle.add(started())
    return chronicle


def test_a_listener_hears_each_event_with_the_state_after_it() -> None:
    chronicle = begun()
    heard: list[tuple[ev.Event, bool]] = []
    leave = chronicle.subscribe(lambda event, state: heard.append((event, OTHER in state.devices)))

    chronicle.add(found())
    chronicle.add(ev.DeviceGone(device=OTHER))
    leave()
    leave()
    chronicle.add(found())

    assert heard == [(found(), True), (ev.DeviceGone(device=OTHER), False)]
    assert OTHER in chronicle.state.devices


def test_what_a_listener_causes_is_told_after_the_present_event() -> None:
    chronicle = begun()
    heard: list[tuple[str, str]] = []

    def first(event: ev.Event, state: State) -> None:
        heard.append(("first", type(event).__name__))
        if isinstance(event, ev.DeviceFound):
            chronicle.add(ev.DeviceGone(device=OTHER))
            assert OTHER not in chronicle.state.devices, "the state itself never waits"

    chronicle.subscribe(first)
    chronicle.subscribe(lambda event, state: heard.append(("second", type(event).__name__)))
    chronicle.add(found())

    assert heard == [
        ("first", "DeviceFound"),
        ("second", "DeviceFound"),
        ("first", "DeviceGone"),
        ("second", "DeviceGone"),
    ]


def test_what_comes_before_the_start_is_kept_until_then() -> None:
    chronicle = Chronicle()
    notice = ev.NoticeRaised(problem=Problem(code="early", what="Early."))
    heard: list[str] = []
    chronicle.subscribe(lambda event, state: heard.append(type(event).__name__))

    chronicle.add(notice)
    assert heard == []
    chronicle.add(started())

    assert heard == ["NodeStarted", "NoticeRaised"]
    assert chronicle.state.notices == (notice.problem,)


def test_an_event_that_cannot_follow_is_left_out() -> None:
    chronicle = begun()
    heard: list[ev.Event] = []
    chronicle.subscribe(lambda event, state: heard.append(event))
    before = chronicle.state

    chronicle.add(ev.RunPhaseChanged(run=RUN, phase=phases.Training()))
    chronicle.add(found())

    assert heard == [found()]
    assert before.run is None and chronicle.state.run is None


def test_a_listener_that_fails_does_not_silence_the_others() -> None:
    chronicle = begun()
    heard: list[ev.Event] = []

    def broken(event: ev.Event, state: State) -> None:
        raise RuntimeError("a bug of a screen")

    chronicle.subscribe(broken)
    chronicle.subscribe(lambda event, state: heard.append(event))
    chronicle.add(found())
    chronicle.add(found("again"))

    assert heard == [found(), found("again")]
