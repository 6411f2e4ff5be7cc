"""The pairing protocol at a table: no sockets, no clock."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.net.address import Address
from core.net.tls import unreachable
from core.pairing import problems
from core.pairing.code import Transcript, commitment
from core.pairing.messages import M1, M2, Note, NoteWord, encode
from core.pairing.state import (
    LIMITS,
    Answered,
    AwaitM2,
    AwaitM3,
    AwaitM4,
    Cancelled,
    Close,
    Comparing,
    ConnectionLost,
    DialFailed,
    Dialled,
    FrameCame,
    Idle,
    Input,
    ProofFailed,
    Proved,
    Proving,
    Refuse,
    Send,
    StrangerSpoke,
    Tell,
    TimePassed,
    Yielded,
)
from core.vocabulary.errors import IllegalTransition
from core.vocabulary.events import PairingAnswered, PairingBegan, PairingEnded
from tests.core.certificates import device_certificate, odd_certificate
from tests.core.pairing.table import HIGH, LOW, NAMES, OTHER, Side, Table, nonces

SAME, DIFFERENT = Answered(True), Answered(False)


def compared(leader: str = "low") -> Table:
    table = Table()
    table.show_codes(getattr(table, leader))
    return table


def call(body: bytes, connection: int = 70, host: str = "10.0.0.9") -> StrangerSpoke:
    return StrangerSpoke(connection, host, body, b"n" * 32)


def m1_of(cert: bytes, name: str = "Eve's laptop") -> bytes:
    return encode(M1(sid=b"s" * 16, cert=cert, name=name))


# --- the way it should go ----------------------------------------------------------------------------------


@pytest.mark.parametrize("leader", ["low", "high"])
def test_both_screens_show_the_same_code_and_the_others_name(leader: str) -> None:
    table = compared(leader)
    assert table.low.codes == table.high.codes
    [code] = table.low.codes
    assert len(code) == 7
    assert isinstance(table.low.state.phase, Comparing)
    assert table.low.state.phase.peer.name == NAMES[HIGH]


@pytest.mark.parametrize("first", ["low", "high"])
def test_after_same_on_both_sides_and_the_proof_both_are_paired(first: str) -> None:
    table = compared()
    one = getattr(table, first)
    table.give(one, SAME)
    table.carry_all()
    assert isinstance(one.events[-1], PairingAnswered)
    assert not one.paired
    table.give(table.other(one), SAME)
    table.carry_all()

    [low], [high] = table.low.paired, table.high.paired
    assert (low.cert, low.name, low.address) == (HIGH, NAMES[HIGH], Address("10.0.0.2", 27600))
    # The called side learns the caller's port from the proof.
    assert (high.cert, high.name, high.address) == (LOW, NAMES[LOW], Address("10.0.0.1", 27601))
    assert isinstance(table.low.state.phase, Idle)
    assert isinstance(table.high.state.phase, Idle)


def test_two_pairings_never_use_the_same_code_inputs() -> None:
    table = compared()
    table.give(table.low, Cancelled())
    table.carry_all()
    table.show_codes(table.low)
    assert len(set(table.low.codes)) == 2


# --- security invariants -----------------------------------------------------------------------------------


def test_invariant_nothing_is_paired_or_held_without_our_users_same() -> None:
    table = compared()
    table.give(table.low, SAME)
    table.carry_all()
    assert table.high.state.held(table.high.now_s) is None
    table.give(table.high, Proved(27600))
    assert not table.high.paired
    assert isinstance(table.high.state.phase, Comparing)


def test_invariant_nothing_is_paired_without_the_proof() -> None:
    table = compared()
    table.give(table.low, SAME)
    table.give(table.high, SAME)
    while table.waiting:
        side, happened = table.waiting.pop(0)
        if not isinstance(happened, Proved):
            table.give(side, happened)
    assert not table.low.paired
    assert not table.high.paired
    table.pass_time(LIMITS.hold_s)
    assert [problem.code for problem in table.low.failures] == ["pairing-unproven"]
    assert table.low.state.held(table.low.now_s) is None


def test_invariant_the_responders_nonce_stays_secret_until_the_initiators_has_come() -> None:
    side = Side(LOW, "10.0.0.1", nonces())
    spoke = call(m1_of(OTHER))
    [send, _] = side.step(spoke)
    assert isinstance(send, Send)
    assert spoke.nonce not in send.body
    [send, _] = side.step(FrameCame(70, b"i" * 32))
    assert send == Send(70, spoke.nonce)


def test_invariant_a_nonce_other_than_the_committed_one_is_called_an_attack() -> None:
    table = Table()
    table.give(table.low, table.low.started(table.high))
    while not isinstance(table.low.state.phase, AwaitM4):
        table.give(*table.waiting.pop(0))
    effects = table.low.step(FrameCame(table.low.state.phase.connection, b"\x01" * 32))
    [failure] = table.low.failures
    assert failure.code == "pairing-attack"
    assert "Possible attack" in failure.what
    assert not table.low.codes
    assert any(isinstance(effect, Close) for effect in effects)


def test_invariant_a_man_in_the_middle_makes_the_codes_differ() -> None:
    """Eve pairs with each side under her own key, and forwards the names."""
    anna, bert = Side(LOW, "10.0.0.1", nonces()), Side(HIGH, "10.0.0.2", nonces())
    eve_to_anna, eve_to_bert = b"e" * 32, b"f" * 32
    # Anna calls Bert, but Eve answers.
    anna.step(anna.started(bert))
    [send] = anna.step(Dialled(1))
    assert isinstance(send, Send)
    m1 = hashlib.sha256(send.body).digest()
    sid = anna.state.phase.sid  # type: ignore[union-attr]
    commit = commitment(device(OTHER), anna.state.me.fp, eve_to_anna, m1)
    m2_body = encode(M2(sid=sid, cert=OTHER, name=NAMES[HIGH], commit=commit))
    [m3] = anna.step(FrameCame(1, m2_body))
    anna.step(FrameCame(1, eve_to_anna))
    # Eve calls Bert.
    bert.step(call(m1_of(OTHER, NAMES[LOW]), 2))
    bert.step(FrameCame(2, eve_to_bert))

    assert isinstance(m3, Send)
    expected = Transcript(
        anna.state.me.fp, device(OTHER), m3.body, eve_to_anna, m1, hashlib.sha256(m2_body).digest()
    )
    assert anna.codes == [f"{expected.code[:3]} {expected.code[3:]}"], "Eve's handshake must have worked"
    assert len(bert.codes) == 1
    assert anna.codes != bert.codes


def device(cert: bytes) -> bytes:
    return hashlib.sha256(cert).digest()


def test_invariant_one_session_at_a_time() -> None:
    table = compared()
    before = table.low.state
    [refuse] = table.low.step(call(m1_of(OTHER)))
    assert isinstance(refuse, Refuse)
    assert refuse.note == "busy"
    assert table.low.state == before


def test_invariant_three_failed_calls_pause_calls_but_not_our_own_attempts() -> None:
    table = Table()
    for _ in range(3):
        table.show_codes(table.low)
        table.give(table.high, DIFFERENT)
        table.carry_all()
    table.high.refusals.clear()
    table.give(table.high, call(m1_of(OTHER)))
    assert [refusal.note for refusal in table.high.refusals] == ["paused"]
    assert table.low.state.attempts.left_s(table.low.now_s) == 60
    with pytest.raises(IllegalTransition):
        table.low.step(table.low.started(table.high))
    assert table.high.state.attempts.left_s(table.high.now_s) == 0
    table.give(table.high, table.high.started(table.low))
    table.carry_all()
    assert len(table.high.codes) == 4

    table.give(table.high, Cancelled())
    table.carry_all()
    table.pass_time(60)
    table.give(table.high, call(m1_of(OTHER)))
    assert isinstance(table.high.state.phase, AwaitM3)


def test_invariant_a_break_by_the_other_side_after_m2_counts_as_a_failure() -> None:
    """A man in the middle sees both codes; it must not be able to retry at will until they agree."""
    table = Table()
    for _ in range(3):
        table.show_codes(table.low)
        table.give(table.high, Cancelled())
        table.carry_all()
    assert [problem.code for problem in table.low.failures] == ["pairing-cancelled"] * 3
    assert table.low.state.attempts.left_s(table.low.now_s) == 60
    assert table.high.state.attempts.left_s(table.high.now_s) == 0, "our own user's cancel is no guess"


def test_calls_that_are_cancelled_time_and_again_pause_but_not_our_own_attempts() -> None:
    """A stranger who keeps calling would occupy the screen."""
    table = Table()
    for _ in range(3):
        table.show_codes(table.low)
        table.give(table.high, Cancelled())
        table.carry_all()
    assert table.high.state.calls.left_s(table.high.now_s) == 60
    assert table.high.state.attempts.left_s(table.high.now_s) == 0
    for _ in range(3):
        table.give(table.high, table.high.started(table.low))
        table.give(table.high, Cancelled())
        table.carry_all()
    assert table.high.state.attempts.left_s(table.high.now_s) == 0


def test_invariant_success_ends_the_count() -> None:
    table = Table()
    for _ in range(2):
        table.show_codes(table.low)
        table.give(table.low, DIFFERENT)
        table.carry_all()
    table.show_codes(table.low)
    for side in (table.low, table.high):
        table.give(side, SAME)
    table.carry_all()
    assert table.low.paired
    assert table.low.state.attempts.failures == table.high.state.calls.failures == 0


def test_invariant_the_pin_is_held_for_at_most_120_seconds() -> None:
    table = compared()
    table.give(table.low, SAME)
    now_s = table.low.now_s
    held = table.low.state.held(now_s + LIMITS.hold_s - 0.01)
    assert held is not None
    assert held.cert == HIGH
    assert table.low.state.held(now_s + LIMITS.hold_s) is None


# --- refusals ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "note"),
    [
        (m1_of(LOW), "self"),
        (m1_of(odd_certificate(ca=True)), "refused"),
        (m1_of(b"garbage"), "refused"),
        (m1_of(OTHER).replace(b'"v":1', b'"v":2'), "version"),
        (m1_of(OTHER)[:-1], "refused"),
        (b"\x00" * 4096, "refused"),
        (b"", "refused"),
    ],
)
def test_a_strangers_wrong_call_is_refused_and_never_reaches_the_screen(body: bytes, note: str) -> None:
    side = Side(LOW, "10.0.0.1", nonces())
    [refuse] = side.step(call(body))
    assert isinstance(refuse, Refuse)
    assert refuse.note == note
    assert side.events == []
    assert side.state.phase == Idle()


def awaiting_m2() -> Side:
    side = Side(LOW, "10.0.0.1", nonces())
    side.step(side.started(Side(HIGH, "10.0.0.2", nonces())))
    side.step(Dialled(1))
    return side


def m2_of(side: Side, cert: bytes, **changes: object) -> bytes:
    fields = {"sid": side.state.phase.sid, "cert": cert, "name": "B", "commit": b"h" * 32}  # type: ignore[union-attr]
    return encode(M2(**(fields | changes)))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("cert", "code"),
    [
        (LOW, "pairing-self"),
        (odd_certificate(ca=True), "bad-certificate"),
        (b"x", "bad-certificate"),
        (odd_certificate(years=(2000, 2020)), "certificate-expired"),
    ],
)
def test_a_wrong_certificate_in_the_answer_ends_the_pairing_with_its_reason(cert: bytes, code: str) -> None:
    side = awaiting_m2()
    side.step(FrameCame(1, m2_of(side, cert)))
    assert [problem.code for problem in side.failures] == [code]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"garbage", "pairing-malformed"),
        (b'{"v":3}', "pairing-version"),
        (b'{"v":1,"note":"version"}', "pairing-refused"),
        (b'{"v":1,"note":"busy"}', "pairing-busy"),
        (b'{"v":1,"note":"paused"}', "pairing-paused"),
        (b'{"v":1,"note":"self"}', "pairing-self"),
        (b'{"v":1,"note":"refused"}', "pairing-refused"),
        (b'{"v":1,"note":"cancelled"}', "pairing-cancelled"),
        (b'{"v":1,"note":"same"}', "pairing-malformed"),
        (b'{"v":1,"note":"no such word"}', "pairing-malformed"),
        (b"n" * 32, "pairing-malformed"),
    ],
)
def test_another_message_instead_of_the_answer_ends_the_pairing_with_its_reason(
    body: bytes, code: str
) -> None:
    side = awaiting_m2()
    side.step(FrameCame(1, body))
    [failure] = side.failures
    assert failure.code == code
    assert failure.fix
    assert side.state.phase == Idle()
    assert side.state.attempts.failures == 0, "nothing could be guessed yet"


def test_an_answer_to_another_question_is_refused() -> None:
    side = awaiting_m2()
    side.step(FrameCame(1, m2_of(side, HIGH, sid=b"x" * 16)))
    assert [problem.code for problem in side.failures] == ["pairing-malformed"]


# --- people ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("by", ["low", "high"])
def test_different_on_one_side_ends_both_and_says_where(by: str) -> None:
    table = compared()
    one = getattr(table, by)
    table.give(table.other(one), SAME)
    table.give(one, DIFFERENT)
    table.carry_all()
    assert one.failures[0].code == table.other(one).failures[0].code == "pairing-different"
    assert "here" in one.failures[0].what
    assert NAMES[one.cert] in table.other(one).failures[0].what
    assert not one.paired
    assert table.other(one).state.held(0) is None


def test_different_after_same_still_ends_it() -> None:
    table = compared()
    table.give(table.low, SAME)
    table.give(table.low, DIFFERENT)
    table.carry_all()
    assert table.high.failures[0].code == "pairing-different"


def test_same_twice_is_the_same_as_once() -> None:
    table = compared()
    table.give(table.low, SAME)
    before = table.low.state
    assert table.low.step(SAME) == ()
    assert table.low.state == before


def test_nobody_answering_for_a_minute_ends_it_and_says_who() -> None:
    table = compared()
    table.give(table.low, SAME)
    table.carry_all()
    table.pass_time(LIMITS.answer_s - 0.01)
    assert isinstance(table.low.state.phase, Comparing)
    table.low.now_s += 0.01
    table.give(table.low, TimePassed())
    assert NAMES[HIGH] in table.low.failures[0].what
    table.carry_all()
    assert table.high.failures[0].code == "pairing-unanswered"
    assert table.high.state.phase == Idle()


@pytest.mark.parametrize("stage", range(4))
def test_no_code_within_ten_seconds_ends_it_and_names_the_address(stage: int) -> None:
    table = Table()
    table.give(table.low, table.low.started(table.high))
    for _ in range(stage):
        table.give(*table.waiting.pop(0))
    table.waiting.clear()
    assert not isinstance(table.low.state.phase, Comparing)
    table.low.now_s += LIMITS.code_s
    table.give(table.low, TimePassed())
    assert table.low.failures[0].code == "pairing-timeout"
    assert "10.0.0.2" in table.low.failures[0].what


def test_an_unreachable_address_ends_it_with_the_drivers_reason() -> None:
    side = Side(LOW, "10.0.0.1", nonces())
    side.step(side.started(Side(HIGH, "10.0.0.2", nonces())))
    side.step(DialFailed(unreachable("10.0.0.2:27600", "refused")))
    assert side.failures[0].code == "unreachable"
    assert side.state.attempts.failures == 0


def test_a_broken_connection_ends_it_on_both_sides() -> None:
    table = compared()
    for side in (table.low, table.high):
        table.give(side, ConnectionLost(1))
    table.carry_all()
    assert [side.failures[0].code for side in (table.low, table.high)] == ["pairing-lost"] * 2


def test_a_failed_proof_ends_it_on_both_sides() -> None:
    table = compared()
    table.give(table.low, SAME)
    table.give(table.high, SAME)
    table.waiting = [(side, what) for side, what in table.waiting if not isinstance(what, Proved)]
    while not isinstance(table.low.state.phase, Proving):
        table.give(*table.waiting.pop(0))
    table.waiting = [(side, what) for side, what in table.waiting if not isinstance(what, Proved)]
    table.give(table.low, ProofFailed(problems.attack("wrong key.")))
    table.carry_all()
    assert table.low.failures[0].code == "pairing-attack"
    assert table.high.failures[0].code == "pairing-refused"
    assert not table.low.paired
    assert not table.high.paired


# --- both click at once ------------------------------------------------------------------------------------


@settings(deadline=None)
@given(st.data())
def test_when_both_click_at_once_the_lower_fingerprint_leads_in_every_order_of_events(
    data: st.DataObject,
) -> None:
    table = Table()
    table.give(table.low, table.low.started(table.high))
    table.give(table.high, table.high.started(table.low))
    while table.waiting:
        # Each side gets its own frames in order per connection; between connections any order is possible.
        heads = first_of_each_connection(table.waiting)
        side, happened = heads[data.draw(st.integers(0, len(heads) - 1))]
        table.waiting.remove((side, happened))
        table.give(side, happened)

    assert table.low.codes == table.high.codes != []
    assert isinstance(table.low.state.phase, Comparing)
    assert isinstance(table.high.state.phase, Comparing)
    assert (table.low.state.phase.role, table.high.state.phase.role) == ("initiator", "responder")
    for side in (table.low, table.high):
        table.give(side, SAME)
    table.carry_all()
    assert table.low.paired
    assert table.high.paired


def first_of_each_connection(waiting: list[tuple[Side, Input]]) -> list[tuple[Side, Input]]:
    seen: set[tuple[bytes, int]] = set()
    heads = []
    for side, happened in waiting:
        key = (side.cert, getattr(happened, "connection", 0))
        if key not in seen:
            seen.add(key)
            heads.append((side, happened))
    return heads


def test_a_third_device_cant_use_our_click_on_another() -> None:
    side = awaiting_m2()
    [refuse] = side.step(call(m1_of(OTHER)))
    assert isinstance(refuse, Refuse)
    assert refuse.note == "busy"


def test_a_side_that_yielded_does_not_wait_forever() -> None:
    side = Side(HIGH, "10.0.0.2", nonces())
    side.step(side.started(Side(LOW, "10.0.0.1", nonces())))
    side.step(Dialled(1))
    side.step(FrameCame(1, encode(Note(note="glare"))))
    assert isinstance(side.state.phase, Yielded)
    side.now_s += LIMITS.code_s
    side.step(TimePassed())
    assert side.failures[0].code == "pairing-timeout"


def test_a_late_connection_of_a_given_up_attempt_is_closed() -> None:
    side = Side(LOW, "10.0.0.1", nonces())
    side.step(side.started(Side(HIGH, "10.0.0.2", nonces())))
    side.step(Cancelled())
    assert side.step(Dialled(4)) == (Close(4),)


# --- any order, any nonsense -------------------------------------------------------------------------------

_certificates = st.sampled_from([LOW, HIGH, OTHER, device_certificate(9), odd_certificate(ca=True), b"x"])
_words: tuple[NoteWord, ...] = ("same", "different", "cancelled", "glare", "busy", "refused", "timeout")
_bodies = (
    st.binary(max_size=40)
    | st.binary(min_size=32, max_size=32)
    | st.builds(lambda cert: m1_of(cert), _certificates)
    | st.sampled_from(_words).map(lambda word: encode(Note(note=word)))
)
_numbers = st.integers(1, 4)
_inputs = st.one_of(
    st.builds(Dialled, _numbers),
    st.just(DialFailed(unreachable("a", "b"))),
    st.builds(
        StrangerSpoke,
        _numbers,
        st.sampled_from(["10.0.0.2", "10.0.0.9"]),
        _bodies,
        st.binary(min_size=32, max_size=32),
    ),
    st.builds(FrameCame, _numbers, _bodies),
    st.builds(ConnectionLost, _numbers),
    st.builds(Answered, st.booleans()),
    st.just(Cancelled()),
    st.builds(Proved, st.integers(1, 65535)),
    st.just(ProofFailed(problems.attack("x."))),
    st.just(TimePassed()),
)
_news = st.one_of(st.sampled_from(["start", "time", "m2", "m2", "m4", "m4"]), _inputs)


@settings(max_examples=300, deadline=None)
@given(st.lists(_news, max_size=40))
def test_no_order_of_events_breaks_the_invariants(news: list[Input | str]) -> None:
    side = Side(LOW, "10.0.0.1", nonces())
    peer = Side(HIGH, "10.0.0.2", nonces())
    said_same = False
    for item in news:
        happened = realised(side, peer, item)
        if happened is None:
            continue
        before = side.state
        told = len(side.events)
        effects = side.step(happened)
        after = side.state

        if isinstance(happened, Answered) and isinstance(before.phase, Comparing):
            said_same = happened.same
        if isinstance(before.phase, Idle):
            said_same = False
        for event in side.events[told:]:
            if type(event).__name__ == "Paired":
                assert said_same
                assert isinstance(happened, Proved)
                assert before.held(side.now_s) is not None
        if after.held(side.now_s) is not None:
            assert said_same
        assert (after.deadline_s is None) == isinstance(after.phase, Idle)
        assert (
            not isinstance(after.phase, Idle)
            or isinstance(before.phase, Idle)
            or any(isinstance(effect, Tell) for effect in effects)
        ), "a pairing never ends in silence"

    side.now_s += LIMITS.hold_s
    if not isinstance(side.state.phase, Idle):
        side.step(TimePassed())
    assert side.state.phase == Idle(), "nothing waits forever"
    assert side.state.held(side.now_s) is None


def realised(side: Side, peer: Side, item: Input | str) -> Input | None:
    """The protocol's own next frame, made to fit, so that random tests reach the later phases."""
    phase = side.state.phase
    match item:
        case "start":
            if isinstance(phase, Idle) and not side.state.attempts.left_s(side.now_s):
                return side.started(peer)
        case "time":
            side.now_s += 7
            return TimePassed()
        case "m2":
            if isinstance(phase, AwaitM2):
                commit = commitment(device(HIGH), device(LOW), b"r" * 32, phase.m1)
                return FrameCame(phase.connection, m2_of(side, HIGH, commit=commit))
        case "m4":
            if isinstance(phase, AwaitM4 | AwaitM3):
                return FrameCame(phase.connection, b"r" * 32)
        case str():
            raise AssertionError(item)
        case _:
            return item
    return None


def test_began_names_the_caller() -> None:
    table = compared()
    began = table.high.events[0]
    assert began == PairingBegan(
        incoming=True,
        name=NAMES[LOW],
        address="10.0.0.1",
        device=table.low.state.me.fp.hex(),  # type: ignore[arg-type]
    )
    assert table.low.events[0] == PairingBegan(incoming=False, name=NAMES[HIGH], address="10.0.0.2:27600")


def test_a_failure_names_the_device_once_it_is_known() -> None:
    table = compared()
    table.give(table.low, Cancelled())
    table.carry_all()
    [*_, failed] = table.high.events
    assert isinstance(failed, PairingEnded)
    assert failed.device == table.low.state.me.fp.hex()
    assert failed.problem is not None
