"""What a broken link may have swallowed is numbered and kept."""

from core.run.replay import MOST, Replay
from core.vocabulary import events as ev
from core.vocabulary.ids import DeviceId, RunId
from core.vocabulary.progress import LogLines, Progress

RUN = RunId("run")
BEN = DeviceId("b" * 52)


def logged(number: int) -> ev.MemberLogged:
    return ev.MemberLogged(
        run=RUN, device=BEN, lines=LogLines(task="worker:0", stream="stdout", text=str(number))
    )


def said(count: int) -> Replay:
    replay = Replay()
    for number in range(1, count + 1):
        replay, given = replay.after(logged(number))
        assert given == number
    return replay


def test_what_came_after_the_last_that_was_heard_is_said_again_in_order() -> None:
    assert said(5).since(3) == [(logged(4), 4), (logged(5), 5)]
    assert said(5).since(0) == [(logged(number), number) for number in range(1, 6)]
    assert said(5).since(5) == said(0).since(0) == []


def test_of_a_long_silence_the_newest_is_kept() -> None:
    replay = said(MOST + 10)
    again = replay.since(0)
    assert len(again) == MOST
    assert again[0] == (logged(11), 11) and again[-1] == (logged(MOST + 10), MOST + 10)


def test_what_a_newer_one_replaces_is_not_kept() -> None:
    step = Progress(at_s=1.0, epoch=0, epochs=1, step=1, batch=1)
    for event in (ev.MemberProgressed(run=RUN, device=BEN, progress=step), ev.WaitingChanged(run=RUN)):
        replay, number = said(2).after(event)
        assert number == 0 and replay == said(2)
