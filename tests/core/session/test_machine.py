"""Cut after any byte, in either direction, any number of times, a session loses and repeats nothing."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.session.frames import PIECE_BYTES, Ack, Alive, Begin, MalformedFrame, MessageHead, Word, encode
from core.session.machine import REDIAL_S, Session
from core.session.state import Message, NotSent, SessionLimits
from core.vocabulary.errors import Problem
from tests.core.session.wires import Wire, World

BYE = Problem(code="stopped", what="Ben pressed Stop.", fix="Train again.")
SIZES = [0, 1, 300, PIECE_BYTES, 2 * PIECE_BYTES + 5]


@dataclass(frozen=True)
class Act:
    kind: str
    side: int
    number: int


_sides, _none = st.integers(0, 1), st.just(0)
_acts = st.one_of(
    st.builds(Act, st.just("put"), _sides, st.sampled_from(SIZES)),
    st.builds(Act, st.just("carry"), _sides, st.integers(0, 600)),
    st.builds(Act, st.just("carry"), _sides, st.integers(PIECE_BYTES, 3 * PIECE_BYTES)),
    st.builds(Act, st.sampled_from(["turn", "turn", "cut"]), _sides, _none),
    st.builds(Act, st.sampled_from(["call", "write", "connect", "break"]), _sides, _none),
    st.builds(Act, st.just("pass"), _none, st.sampled_from([1, 5, 120])),
)
_reach = st.sampled_from([(True, True), (True, False), (False, True)])


def do(world: World, act: Act) -> None:
    side = world.sides[act.side]
    match act.kind:
        case "turn":
            world.turn()
        case "carry":
            world.sides[1 - act.side].write(world.now_s)
            world.carry(act.side, act.number)
        case "break" if side.session.live:
            # The other side does not notice.
            side.session.lost(side.session.live)
        case "call":
            world.call(act.side)
        case "write":
            side.write(world.now_s)
        case "connect":
            world.connect()
        case "cut":
            world.cut()
        case "put":
            side.put(act.number)
        case "pass":
            world.now_s += act.number / 10
    for each in world.sides:
        other = world.sides[1 - each.side]
        assert each.arrived == other.sent[: len(each.arrived)], "once, in order, whole"


def everything_arrived(world: World) -> bool:
    one, other = world.sides
    return one.arrived == other.sent and other.arrived == one.sent


def unconfirmed(world: World) -> int:
    return sum(side.session.unconfirmed for side in world.sides)


def are_joined(world: World) -> bool:
    one, other = (side.session.live for side in world.sides)
    return one is other is not None


@given(acts=st.lists(_acts, max_size=80), can_call=_reach)
def test_every_message_arrives_once_in_order_and_whole_however_often_it_is_cut(
    acts: list[Act], can_call: tuple[bool, bool]
) -> None:
    world = World(can_call=can_call)
    for act in acts:
        do(world, act)
    one, other = world.sides
    world.turn_until(lambda: everything_arrived(world) and not unconfirmed(world) and are_joined(world))
    assert one.session.number == other.session.number
    for _ in range(20):
        world.turn()
    wires = len(world.wires)
    for _ in range(50):
        world.turn()
    assert len(world.wires) == wires, "nobody calls without a need"


@given(
    before=st.lists(_acts, max_size=40),
    after=st.lists(_acts.filter(lambda act: act.kind != "put"), max_size=40),
    side=st.integers(0, 1),
    linger_s=st.sampled_from([0.0, 0.5, 1000.0]),
)
def test_a_goodbye_arrives_with_its_reason_or_the_loss_is_known(
    before: list[Act], after: list[Act], side: int, linger_s: float
) -> None:
    world = World()
    for act in before:
        do(world, act)
    leaver, other = world.sides[side], world.sides[1 - side]
    leaver.session.leave(BYE, world.now_s + linger_s)
    for act in after:
        do(world, act)
    world.turn_until(lambda: leaver.session.has_left and (other.reasons or other.session.live is None))
    assert other.reasons in ([BYE], [])
    if linger_s == 1000.0:
        assert other.arrived == leaver.sent, "it stays until everything is confirmed"
    if other.reasons:
        world.turn_until(lambda: leaver.session.is_over)


@given(order=st.permutations(["call 0", "call 1", "connect", "connect", "write 0", "write 1"]))
def test_crossing_calls_end_in_one_connection(order: list[str]) -> None:
    world = World()
    world.now_s = 1.0
    for act in order:
        kind, _, side = act.partition(" ")
        do(world, Act(kind, int(side or 0), 0))
    world.turn_until(lambda: all(side.session.live for side in world.sides))
    for _ in range(100):
        world.turn()
    assert world.sides[0].session.live is world.sides[1].session.live
    assert [wire.is_cut for wire in world.wires].count(False) == 1
    assert world.sides[0].session.number == 1, "the call that crossed was turned away"


def met(limits: SessionLimits | None = None, can_call: tuple[bool, bool] = (True, True)) -> World:
    world = World(limits, can_call)
    world.turn_until(lambda: all(side.session.live for side in world.sides))
    world.turn()
    return world


def test_a_peer_that_knew_of_the_live_connection_and_calls_has_lost_it() -> None:
    world = met(can_call=(False, True))
    first = world.sides[0].session.live
    world.sides[1].session.lost(first)  # type: ignore[arg-type]
    assert world.sides[1].session.call_is_due(world.now_s), "at once"
    world.turn()
    world.turn()
    assert world.sides[0].session.live is world.sides[1].session.live is not first


def test_a_follower_takes_the_highest_number() -> None:
    session = Session[Wire](leads=False, can_call=True, limits=SessionLimits(), now_s=0.0)
    assert not session.offer(Wire(0, 0), 0.0)
    assert session.offer(Wire(0, 0), 0.0, begin=Begin(session=5, message=0, bytes=0))
    for number, is_taken in ((4, False), (5, False), (6, True)):
        begin = Begin(session=number, message=0, bytes=0)
        assert session.offer(Wire(0, 0), 0.0, begin=begin) == is_taken


@pytest.mark.parametrize("leads", [True, False])
def test_with_numbers_known_in_advance_both_sides_take_the_highest_and_begin_at_once(
    leads: bool,
) -> None:
    session = Session[Wire](leads=leads, can_call=False, limits=SessionLimits(), now_s=0.0)
    for number, is_taken in ((2, True), (1, False), (2, False), (4, True)):
        assert session.offer(Wire(0, 0), 0.0, number=number) == is_taken
    session.ready()
    output = session.next(0.0)
    assert output is not None and output.frames == encode(Begin(session=4, message=0, bytes=0))
    assert not session.is_flowing
    session.receive(Begin(session=4, message=0, bytes=0))
    assert session.is_flowing


def test_a_connection_that_never_resumed_is_no_success() -> None:
    """Otherwise a peer that hangs up immediately would be called without a pause."""
    session = Session[Wire](leads=True, can_call=True, limits=SessionLimits(), now_s=0.0)
    session.call()
    wire = Wire(0, 0)
    assert session.offer(wire, 0.0)
    session.call_ended(0.0)
    session.lost(wire)
    assert not session.call_is_due(0.01)
    assert session.call_is_due(0.06)


@pytest.mark.parametrize("can_call", [(True, False), (False, True), (True, True)])
def test_a_silent_connection_is_replaced_and_nothing_is_lost(can_call: tuple[bool, bool]) -> None:
    world = met(can_call=can_call)
    for side in world.sides:
        side.put(700_000)
    [wire] = [wire for wire in world.wires if not wire.is_cut]
    for side in world.sides:
        side.write(world.now_s)
    wire.coming[0].clear()
    wire.coming[1].clear()
    began_s = world.now_s
    while not any(wire.is_cut for wire in world.wires):
        world.now_s += 0.1
        world.call(0)
        world.call(1)
        world.connect()
        assert world.now_s - began_s < 12.0
    assert world.now_s - began_s > 9.0
    world.turn_until(lambda: everything_arrived(world))


def test_signs_of_life_keep_a_connection_that_has_nothing_to_carry() -> None:
    world = met()
    for _ in range(600):
        world.turn()
        assert all(side.session.silent_s(world.now_s) < 1.5 for side in world.sides)
    assert len([wire for wire in world.wires if not wire.is_cut]) == 1
    assert world.sides[0].session.number == 1


def test_silence_while_this_side_does_not_read_is_not_the_peers() -> None:
    world = met()
    session = world.sides[0].session
    session.is_held = True
    world.now_s += 60.0
    assert session.silent_s(world.now_s) == 0.0
    assert not session.call_is_due(world.now_s)
    assert session.next(world.now_s), "a sign of life"
    assert session.wait_s(world.now_s) == pytest.approx(0.25), "nothing is due at once"


@pytest.mark.parametrize("sender", [0, 1])
@pytest.mark.parametrize("can_call", [(True, False), (False, True)])
def test_keys_are_renewed_before_they_wear_out_whoever_sends_and_whoever_calls(
    sender: int, can_call: tuple[bool, bool]
) -> None:
    limit = 3_000_000
    world = met(SessionLimits(worn_bytes=limit), can_call)
    for _ in range(40):
        world.sides[sender].put(300_000)
        world.turn()
    world.turn_until(lambda: everything_arrived(world))
    assert 4 <= world.sides[0].session.number <= 8
    assert all(wire.passed < limit + 2_000_000 for wire in world.wires)


def test_each_small_frame_wears_the_keys_as_a_whole_record() -> None:
    world = met(SessionLimits(worn_bytes=100 * 2**14), (True, False))
    for _ in range(120):
        world.sides[0].put(1)
        world.turn()
    assert world.sides[0].session.number == 2
    assert everything_arrived(world)


def test_calls_that_fail_are_repeated_after_longer_and_longer_pauses() -> None:
    session = Session[Wire](leads=True, can_call=True, limits=SessionLimits(), now_s=0.0)
    now_s, pauses_s = 0.0, []
    for _ in range(10):
        assert session.call_is_due(now_s)
        session.call()
        assert not session.call_is_due(now_s)
        session.call_ended(now_s)
        pause_s = session.wait_s(now_s)
        assert pause_s is not None
        assert not session.call_is_due(now_s + pause_s - 0.001)
        now_s += pause_s
        pauses_s.append(pause_s)
    assert pauses_s[:3] == pytest.approx([0.05, 0.1, 0.2])
    assert pauses_s[-1] == REDIAL_S[1]


def test_a_peer_that_can_be_reached_is_called_without_a_pause_and_beside_one_call_that_hangs() -> None:
    session = Session[Wire](leads=True, can_call=True, limits=SessionLimits(), now_s=0.0)
    for _ in range(10):
        session.call()
        session.call_ended(0.0)
    assert not session.call_is_due(1.0)
    session.call_anew()
    assert session.call_is_due(1.0)
    session.call()
    assert not session.call_is_due(1.0)
    session.call_anew()
    assert session.call_is_due(1.0) and session.wait_s(1.0) == 0.0
    session.call()
    session.call_anew()
    assert not session.call_is_due(1.0), "however often it is said"
    for _ in range(2):
        session.call_ended(1.0)
    session.call()
    assert not session.call_is_due(9.0)


def test_a_confirmation_travels_with_the_next_piece_or_goes_alone_after_a_while() -> None:
    world = met()
    one, other = world.sides
    one.put(10)
    one.write(world.now_s)
    world.carry(1, 2**30)
    other.write(world.now_s)
    assert one.session.unconfirmed == 1
    assert world.wires[-1].coming[0] == b""
    world.now_s += 0.3
    assert other.session.ack_is_due(world.now_s)
    assert other.session.wait_s(world.now_s - 0.1) is not None
    other.write(world.now_s)
    world.carry(0, 2**30)
    assert one.session.unconfirmed == 0


def test_a_goodbye_waits_until_everything_is_confirmed() -> None:
    world = met()
    one, other = world.sides
    one.put(10)
    one.session.leave(BYE, world.now_s + 1000.0)
    one.write(world.now_s)
    assert not one.session.has_left
    world.turn_until(lambda: other.reasons)
    assert other.arrived == one.sent


def test_a_goodbye_that_a_new_connection_overtook_is_sent_again() -> None:
    world = met()
    one, other = world.sides
    one.session.leave(BYE, world.now_s)
    one.write(world.now_s)
    assert one.session.has_left
    assert other.session.live
    other.session.lost(other.session.live)
    world.turn_until(lambda: other.reasons, 10)
    assert other.reasons == [BYE]


def test_once_it_resumed_the_next_call_is_made_at_once_and_pauses_are_short_again() -> None:
    session = Session[Wire](leads=True, can_call=True, limits=SessionLimits(), now_s=0.0)
    for _ in range(6):
        session.call()
        session.call_ended(0.0)
    wire = Wire(0, 0)
    assert session.offer(wire, 0.0)
    session.ready()
    session.receive(Begin(session=1, message=0, bytes=0))
    session.lost(wire)
    assert session.call_is_due(0.0)
    session.call()
    session.call_ended(0.0)
    assert session.wait_s(0.0) == REDIAL_S[0]


def test_a_peer_that_has_forgotten_everything_is_detected() -> None:
    world = met()
    world.sides[0].put(10)
    world.turn_until(lambda: not world.sides[0].session.unconfirmed)
    world.cut()
    world.sides[1] = World().sides[1]
    with pytest.raises(NotSent):
        world.turn_until(lambda: False)


HEAD = MessageHead(message=0, offset=0, size=PIECE_BYTES + 1, about=b"0")


@pytest.mark.parametrize(
    "words",
    [
        [Begin(session=1, message=0, bytes=0)],
        [Ack(message=1)],
        [MessageHead(message=1, offset=0, size=1, about=b"")],
        [MessageHead(message=0, offset=1, size=1, about=b"")],
        [HEAD, HEAD, MessageHead(message=0, offset=0, size=1, about=b"0")],
        [HEAD, MessageHead(message=0, offset=0, size=PIECE_BYTES + 1, about=b"1")],
    ],
    ids=["begins again", "confirms the unsent", "ahead", "within", "another size", "another message"],
)
def test_messages_that_the_protocol_forbids_are_refused(words: list[Word]) -> None:
    session = met().sides[0].session
    with pytest.raises((MalformedFrame, NotSent)):
        for word in words:
            if isinstance(head := session.receive(word), MessageHead):
                session.begin(head)


@pytest.mark.parametrize("length", [1, PIECE_BYTES - 1])
def test_a_piece_has_the_length_that_its_message_leaves(length: int) -> None:
    session = met().sides[0].session
    with pytest.raises(MalformedFrame, match="an unexpected piece"):
        session.piece(length)
    session.begin(HEAD)
    with pytest.raises(MalformedFrame, match="an unexpected piece"):
        session.piece(length)
    assert session.piece(PIECE_BYTES) == 0


@pytest.mark.parametrize("word", [Alive(), Begin(session=7, message=0, bytes=0)])
def test_a_follower_that_does_not_answer_the_beginning_is_refused(word: Word) -> None:
    session = Session[Wire](leads=True, can_call=True, limits=SessionLimits(), now_s=0.0)
    assert session.offer(Wire(0, 0), 0.0)
    session.ready()
    with pytest.raises(MalformedFrame, match="before the answer"):
        session.receive(word)


def test_nothing_is_accepted_after_the_end() -> None:
    session = met().sides[0].session
    session.end()
    session.put(Message(b""))
    assert session.unconfirmed == 0
    assert session.next(100.0) is None
    assert not session.call_is_due(100.0)
    assert not session.offer(Wire(9, 1), 100.0, seen=9)


def test_a_connection_that_cannot_be_written_to_is_only_read() -> None:
    world = met()
    one, other = world.sides
    assert one.session.live
    one.session.cut(one.session.live)
    one.put(7)
    other.put(8)
    world.turn()
    assert (one.arrived, other.arrived) == (other.sent, [])
    assert one.session.wait_s(world.now_s + 1.0) != 0.0, "the sending thread would not rest"
    world.cut()
    world.turn_until(lambda: everything_arrived(world) and not unconfirmed(world))
