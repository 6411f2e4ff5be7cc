"""Events become the state, and all listeners get them in one order."""

from core.node.store import Store
from core.vocabulary import events as ev
from core.vocabulary import phases
from core.vocabulary.errors import Problem
from core.vocabulary.state import State
from tests.core.fake_node import OTHER, found, started
from tests.core.vocabulary.test_state import RUN

Heard = list[tuple[str, bool]]


def begun() -> Store:
    store = Store()
    store.add(started())
    return store


def test_a_listener_hears_each_event_with_the_state_after_it() -> None:
    store = begun()
    heard: list[tuple[ev.Event, bool]] = []
    leave = store.subscribe(lambda event, state: heard.append((event, OTHER in state.devices)))

    store.add(found())
    store.add(ev.DeviceGone(device=OTHER))
    leave()
    leave()
    store.add(found())

    assert heard == [(found(), True), (ev.DeviceGone(device=OTHER), False)]
    assert OTHER in store.state.devices


def test_events_that_a_listener_causes_follow_the_present_one() -> None:
    store = begun()
    heard: list[tuple[str, str]] = []

    def first(event: ev.Event, state: State) -> None:
        heard.append(("first", type(event).__name__))
        if isinstance(event, ev.DeviceFound):
            store.add(ev.DeviceGone(device=OTHER))
            assert OTHER not in store.state.devices, "the state itself never waits"

    store.subscribe(first)
    store.subscribe(lambda event, state: heard.append(("second", type(event).__name__)))
    store.add(found())

    assert heard == [
        ("first", "DeviceFound"),
        ("second", "DeviceFound"),
        ("first", "DeviceGone"),
        ("second", "DeviceGone"),
    ]


def test_events_before_the_start_are_kept_until_then() -> None:
    store = Store()
    notice = ev.NoticeRaised(problem=Problem(code="early", what="Early."))
    heard: list[str] = []
    store.subscribe(lambda event, state: heard.append(type(event).__name__))

    store.add(notice)
    assert heard == []
    store.add(started())

    assert heard == ["NodeStarted", "NoticeRaised"]
    assert store.state.notices == (notice.problem,)


def test_an_event_that_cannot_follow_is_left_out() -> None:
    store = begun()
    heard: list[ev.Event] = []
    store.subscribe(lambda event, state: heard.append(event))
    before = store.state

    store.add(ev.RunPhaseChanged(run=RUN, phase=phases.Training()))
    store.add(found())

    assert heard == [found()]
    assert before.run is None and store.state.run is None


def test_a_listener_that_fails_does_not_silence_the_others() -> None:
    store = begun()
    heard: list[ev.Event] = []

    def broken(event: ev.Event, state: State) -> None:
        raise RuntimeError("a bug of a screen")

    store.subscribe(broken)
    store.subscribe(lambda event, state: heard.append(event))
    store.add(found())
    store.add(found("again"))

    assert heard == [found(), found("again")]
