"""Real nodes on this machine's loopback, each with its own home: for end-to-end tests."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from core.home import settings_file
from core.home.home import Home, prepare
from core.link.budgets import BUDGETS
from core.node.node import PART_ENDS_S, Node
from core.run.context import RunLimits
from core.supervisor.trainers import MakeTrainer
from core.telemetry.gpus import Gpus
from core.telemetry.watch import Watch
from core.vocabulary import events as ev
from core.vocabulary.answers import Done, Refused
from core.vocabulary.commands import AnswerPairing, Pair
from core.vocabulary.ids import DeviceId
from core.vocabulary.node import NodeFace
from core.vocabulary.settings import Settings
from core.vocabulary.state import State

LIMIT_S = 60.0


def home_of(base: Path, name: str, **chosen: object) -> Home:
    """A home whose node stays on the loopback, on any free port."""
    home = Home(base / name)
    prepare(home)
    settings_file.write(home.settings, Settings(name=name, port=0, interfaces=("lo",), **chosen))  # type: ignore[arg-type]
    return home


def quick_watch() -> Watch:
    """As quick as another laptop's budget allows: in a long test it would be told of more."""
    period_s = 1 / BUDGETS["readings"].rate_s
    return Watch(find_gpus=lambda: Gpus(None, "CPU only: a test."), period_s=period_s)


@contextlib.asynccontextmanager
async def node(
    base: Path,
    name: str,
    *,
    make_trainer: MakeTrainer | None = None,
    part_ends_s: float = PART_ENDS_S,
    run_limits: RunLimits | None = None,
    **chosen: object,
) -> AsyncIterator[Node]:
    """``chosen``: settings."""
    home = home_of(base, name, **chosen)
    started = await Node.start(
        home,
        watch=quick_watch(),
        make_trainer=make_trainer,
        part_ends_s=part_ends_s,
        run_limits=run_limits,
    )
    try:
        yield started
    finally:
        await started.stop()


async def wait_for(face: NodeFace, what: Callable[[State], bool], limit_s: float = LIMIT_S) -> State:
    """Waits for the condition; on timeout, reports the state."""
    came = asyncio.Event()
    leave = face.subscribe(lambda event, state: came.set() if what(state) else None)
    try:
        if not what(face.state):
            async with asyncio.timeout(limit_s):
                await came.wait()
    except TimeoutError:
        raise AssertionError(f"it never came so far: {face.state}") from None
    finally:
        leave()
    return face.state


def id_of(face: NodeFace) -> DeviceId:
    assert face.state.me is not None
    return face.state.me.device


def address_of(face: NodeFace) -> str:
    assert face.state.me is not None
    return face.state.me.addresses[0]


async def pair(one: NodeFace, two: NodeFace, *, by_address: bool = True) -> str:
    """Both persons compare and say *Same*. Returns the code; both are linked afterwards."""
    command = Pair(address=address_of(two)) if by_address else Pair(device=id_of(two))
    assert await one.submit(command) == Done()
    codes = []
    for face in (one, two):
        state = await wait_for(face, lambda s: s.pairing is not None and s.pairing.stage == "comparing")
        assert state.pairing is not None
        codes.append(state.pairing.code)
    assert codes[0] == codes[1]
    for face in (one, two):
        assert await face.submit(AnswerPairing(same=True)) == Done()
    for face in (one, two):
        await wait_for(face, lambda s: s.pairing is not None and s.pairing.stage == "done")
    await linked(one, two)
    return codes[0]


async def linked(one: NodeFace, two: NodeFace) -> None:
    for here, there in ((one, two), (two, one)):
        device = id_of(there)
        await wait_for(here, lambda s, device=device: device in s.devices and s.devices[device].linked)  # type: ignore[misc]


def refusal(answer: object) -> str:
    assert isinstance(answer, Refused), answer
    assert answer.problem.what and answer.problem.fix
    return answer.problem.code


class Heard:
    """Records every event of a node from now on."""

    def __init__(self, face: NodeFace) -> None:
        self.events: list[ev.Event] = []
        face.subscribe(lambda event, state: self.events.append(event))

    def kinds(self) -> list[str]:
        return [type(event).__name__ for event in self.events]
