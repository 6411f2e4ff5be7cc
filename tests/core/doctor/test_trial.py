"""Two nodes call each other's trainer ports: real sockets, and links that lose chosen messages."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import psutil
import pytest

from core.cluster.make_plan import FIRST_PORT, LAST_PORT
from core.doctor.trial import NONCE_BYTES, Reach, Trials, dial
from core.link.questions import Questions
from core.runtime.background import Background
from core.supervisor import ports
from core.vocabulary.answers import Findings
from core.vocabulary.commands import RunDoctor
from core.vocabulary.errors import TandemError
from core.vocabulary.ids import DeviceId
from core.vocabulary.peer_messages import BusyTold, Message, ReachAsked, ReachTold
from tests.core.nodes import Heard, id_of, node, pair
from tests.core.wires import Network

HERE = "127.0.0.1"
ANNA, BEN = DeviceId("a" * 64), DeviceId("b" * 64)
QUICK_S = 0.3
NONCE = bytes(range(NONCE_BYTES))


class Ends:
    """The two ends of a link. ``lost``: kinds of messages that never arrive; ``sent``: all that were sent."""

    def __init__(self, background: Background) -> None:
        self.background = background
        self.lost: set[type[Message]] = set()
        self.sent: list[Message] = []
        self.first_sent: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self.linked = True
        self.hosts = {ANNA: HERE, BEN: HERE}
        self.ends = {me: _End(self, me) for me in (ANNA, BEN)}
        self.trials = {
            me: Trials(end, background, dial_s=QUICK_S, slack_s=QUICK_S) for me, end in self.ends.items()
        }

    def carry(self, sender: DeviceId, receiver: DeviceId, message: Message) -> bool:
        self.sent.append(message)
        if not self.first_sent.done():
            self.first_sent.set_result(message)
        if self.linked and type(message) not in self.lost:
            asyncio.get_running_loop().call_soon(self.arrive, receiver, sender, message)
        return self.linked

    def arrive(self, receiver: DeviceId, sender: DeviceId, message: Message) -> None:
        if not self.ends[receiver].questions.on_message(sender, message):
            assert isinstance(message, ReachAsked)
            self.trials[receiver].on_asked(sender, message)


class _End:
    def __init__(self, ends: Ends, me: DeviceId) -> None:
        self._ends, self._me = ends, me
        self.questions = Questions(self.send)

    async def ask(self, device: DeviceId, question: Message, limit_s: float) -> Message | None:
        return await self.questions.ask(device, question, limit_s)

    def send(self, device: DeviceId, message: Message) -> bool:
        return self._ends.carry(self._me, device, message)

    def peer_host(self, device: DeviceId) -> str:
        return self._ends.hosts[device] if self._ends.linked else ""

    def own_host(self, device: DeviceId) -> str:
        return self._ends.hosts[self._me] if self._ends.linked else ""


@pytest.fixture
async def ends() -> AsyncIterator[Ends]:
    background = Background()
    yield Ends(background)
    await background.cancel()


def listened_at() -> set[int]:
    """Trainer ports on which this process listens."""
    found = psutil.Process().net_connections("tcp")
    return {each.laddr.port for each in found if each.status == psutil.CONN_LISTEN} & set(
        range(FIRST_PORT, LAST_PORT)
    )


def serve(say: bytes) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], None]:
    def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(say)
        writer.close()

    return answer


@pytest.mark.real
async def test_each_calls_the_other_and_nothing_stays_open(ends: Ends) -> None:
    before = listened_at()

    assert await ends.trials[ANNA].try_with(BEN) == Reach("answers", "answers", HERE, HERE)

    await ends.background.wait_idle()
    assert listened_at() == before
    asked, told = ends.sent
    assert isinstance(asked, ReachAsked) and isinstance(told, ReachTold)
    assert asked.nonce == told.nonce and FIRST_PORT <= asked.port < LAST_PORT


@pytest.mark.real
async def test_concurrent_requests_share_one_trial(ends: Ends) -> None:
    anna = ends.trials[ANNA]
    first, second = await asyncio.gather(anna.try_with(BEN), anna.try_with(BEN))

    assert first is second and first is not None
    assert len(ends.sent) == 2
    both = await asyncio.gather(anna.try_with(BEN), ends.trials[BEN].try_with(ANNA))
    assert [reach and (reach.inward, reach.outward) for reach in both] == [("answers", "answers")] * 2


@pytest.mark.real
async def test_a_laptop_that_never_answers_is_given_up_and_nothing_stays_open(ends: Ends) -> None:
    before = listened_at()
    ends.lost = {ReachTold}

    assert await ends.trials[ANNA].try_with(BEN) is None

    assert any(isinstance(message, ReachTold) for message in ends.sent)  # it was lost on the way
    await ends.background.wait_idle()
    assert listened_at() == before


@pytest.mark.real
async def test_a_call_that_is_lost_on_the_way_is_reported_for_its_direction(
    ends: Ends, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect, called = asyncio.open_connection, []

    async def drop_the_first(host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        called.append(port)
        if len(called) == 1:
            await asyncio.Event().wait()
        return await connect(host, port)

    monkeypatch.setattr(asyncio, "open_connection", drop_the_first)

    reach = await ends.trials[ANNA].try_with(BEN)

    # Ben calls first, and his call was dropped.
    assert reach is not None and (reach.inward, reach.outward) == ("silent", "answers")
    assert len(called) == 2


@pytest.mark.real
async def test_a_laptop_without_a_free_port_says_so(ends: Ends, monkeypatch: pytest.MonkeyPatch) -> None:
    listen, tries = ports.listen_anywhere, []

    def only_once(host: str) -> socket.socket:
        tries.append(host)
        if len(tries) > 1:
            raise TandemError(code="no-free-port", what="None.", fix="Free one.")
        return listen(host)

    monkeypatch.setattr(ports, "listen_anywhere", only_once)

    assert await ends.trials[ANNA].try_with(BEN) is None
    told = ends.sent[-1]
    assert isinstance(told, ReachTold) and (told.port, told.dialled) == (0, "answers")


async def test_without_a_link_nothing_is_tried(ends: Ends) -> None:
    ends.linked = False

    assert await ends.trials[ANNA].try_with(BEN) is None
    assert ends.sent == []


@pytest.mark.parametrize(
    "asked",
    [
        ReachAsked(nonce=NONCE, port=22),
        ReachAsked(nonce=NONCE, port=LAST_PORT),
        ReachAsked(nonce=NONCE * 1000, port=FIRST_PORT),
    ],
)
async def test_only_ports_of_trainers_are_called(ends: Ends, asked: ReachAsked) -> None:
    ends.trials[BEN].on_asked(ANNA, asked)

    assert len(ends.background) == 0 and ends.sent == []


async def test_an_answer_counts_only_from_the_laptop_that_was_asked(ends: Ends) -> None:
    ends.lost = {ReachAsked}
    trying = asyncio.create_task(ends.trials[ANNA].try_with(BEN))
    asked = await ends.first_sent
    assert isinstance(asked, ReachAsked)
    other = DeviceId("c" * 64)

    heard = ends.ends[ANNA].questions.on_message
    assert not heard(other, ReachTold(nonce=asked.nonce, dialled="answers", port=FIRST_PORT))
    assert not heard(BEN, ReachTold(nonce=NONCE, dialled="answers", port=FIRST_PORT))
    assert not heard(BEN, BusyTold(busy=True))

    assert await trying is None


@pytest.mark.parametrize(
    ("says", "found"), [(NONCE, "answers"), (b"HTTP/1.0 400 Bad", "stranger"), (b"short", "stranger")]
)
async def test_the_bytes_read_prove_who_answers(
    monkeypatch: pytest.MonkeyPatch, says: bytes, found: str
) -> None:
    air = Network()
    monkeypatch.setattr(asyncio, "open_connection", air.open_connection)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serve(says)(reader, writer)

    async with await air.start_server(answer) as server:
        assert await dial(HERE, server.port, NONCE, 5.0) == found


@pytest.mark.parametrize(
    ("failure", "found"),
    [
        (ConnectionRefusedError(), "refused"),
        (ConnectionResetError(), "refused"),
        (OSError(113, "No route to host"), "unreachable"),
        (TimeoutError(), "silent"),
    ],
)
async def test_a_failed_call_is_reported_by_its_kind(
    monkeypatch: pytest.MonkeyPatch, failure: OSError, found: str
) -> None:
    async def fail(host: str, port: int) -> None:
        raise failure

    monkeypatch.setattr(asyncio, "open_connection", fail)

    assert await dial(HERE, FIRST_PORT, NONCE, 5.0) == found


@pytest.mark.real
async def test_a_port_that_sends_nothing_is_a_strangers() -> None:
    with socket.create_server((HERE, 0)) as silent:
        assert await dial(HERE, silent.getsockname()[1], NONCE, QUICK_S) == "stranger"


@pytest.mark.real
async def test_two_nodes_tell_that_their_trainers_reach_each_other(tmp_path: Path) -> None:
    async with node(tmp_path, "anna", discovery=False) as anna, node(tmp_path, "ben", discovery=False) as ben:
        await pair(anna, ben)
        heard = Heard(anna)
        for face, other in ((anna, "ben"), (ben, "anna")):
            answer = await face.submit(RunDoctor())
            assert isinstance(answer, Findings)
            (found,) = (each for each in answer.findings if each.code.startswith("reach"))
            assert (found.code, found.level) == ("reach", "ok") and other in found.what
        assert "LinkDown" not in heard.kinds()
        assert anna.state.devices[id_of(ben)].linked
