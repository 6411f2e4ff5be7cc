from app.cli.fetching import Fetching
from app.cli.run_display import PLAIN_EVERY_S
from core.vocabulary.ids import DeviceId
from core.vocabulary.state import State
from tests.app import world
from tests.app.cli.scripted_node import ScriptedNode, Words, linked, paired


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def state() -> State:
    node = ScriptedNode()
    node.happen(paired(name="Ben\x1b[2J"))
    node.happen(linked(name="Ben\x1b[2J"))
    return node.state


def test_the_first_piece_the_last_one_and_a_few_between_are_told() -> None:
    screen, clock = Words(), Clock()
    fetching = Fetching(screen, clock)
    for megabytes in (0, 1, 2):
        fetching(world.came(megabytes * 1_000_000), state())
    clock.now_s += PLAIN_EVERY_S
    fetching(world.came(3_000_000), state())
    fetching(world.came(4_000_000), state())
    fetching(world.came(70_500_000), state())
    assert screen.said.splitlines() == [
        f"Fetching the checkpoint from Ben: {done} of 70.5 MB." for done in ("0.0", "3.0", "70.5")
    ]


def test_that_another_laptop_sends_now_is_told_at_once() -> None:
    screen = Words()
    fetching = Fetching(screen, Clock())
    fetching(world.came(0), state())
    other = DeviceId("c" * 64)
    fetching(type(world.came(0))(run=world.RUN, device=other, done=0, total=1_000), state())
    assert "from cccccccc" in screen.said.splitlines()[-1]
