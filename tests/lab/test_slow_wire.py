"""A wire on which a step takes most of a minute, and everything waits behind two seconds of it."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from core.vocabulary import events as ev
from core.vocabulary.commands import SetCodePolicy
from core.vocabulary.options import AWAY_S
from core.vocabulary.phases import Finished
from core.vocabulary.plan import RunSpec
from tests.lab import faults
from tests.lab.agent import Agent
from tests.lab.lab import Lab, pair
from tests.lab.laptops import weights

SCRIPT = Path(__file__).parent / "scripts" / "large.py"
STEPS, STEP_BYTES = 3, 4 * 25_005_001
STEP_S = STEP_BYTES / (20e6 / 8)
OUT_S = 15.0
LIMIT_S = 1200.0


pytestmark = [
    pytest.mark.lab,
    pytest.mark.cluster,
    pytest.mark.complete,
    pytest.mark.usefixtures("namespaces"),
    pytest.mark.timeout(2 * LIMIT_S),
]


@dataclass(frozen=True, slots=True)
class Trained:
    """``steps_s``: when each was reported, since Train was pressed. ``sent_bytes``: to ben, of any kind."""

    weights: str
    steps_s: list[float]
    sent_bytes: int
    audited: int
    """Steps that were exchanged twice."""


def trained(lab: Lab, folder: Path, meanwhile: Callable[[Agent, Agent], None]) -> Trained:
    shutil.copy(SCRIPT, folder)
    anna, ben = lab.agent(0), lab.agent(1)
    assert ben.state.me is not None
    pair(anna, ben, ben.state.me.addresses[0])
    ben.do(SetCodePolicy(device=anna.device, policy="always"))
    before = faults.received_bytes(lab.network, 1)
    began_s = time.monotonic()
    spec = RunSpec(
        script=str(folder / SCRIPT.name),
        devices=(ben.device,),
        seed=7,
        shares={anna.device: 16, ben.device: 16},
        go_on_s=AWAY_S,
    )
    run = anna.train(spec)
    meanwhile(anna, ben)
    for agent in (anna, ben):
        assert agent.ends(run, LIMIT_S) == Finished()
    (digest,) = set(weights(anna).values())
    summary = anna.run().summary
    assert summary is not None and summary.audits is not None
    own = [each for each in anna.told if is_step(each.event, anna)]
    return Trained(
        weights=digest,
        steps_s=[each.at_s - began_s for each in own],
        sent_bytes=faults.received_bytes(lab.network, 1) - before,
        audited=summary.audits.audited,
    )


def is_step(event: object, agent: Agent) -> bool:
    return isinstance(event, ev.MemberProgressed) and event.device == agent.device


def test_25_million_parameters_train_at_20_mbit_even_if_the_cable_is_out_in_the_midst_of_a_step(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    def pull(anna: Agent, ben: Agent) -> None:
        anna.hears(ev.MemberProgressed, lambda event: event.progress.step == STEPS - 2, limit_s=LIMIT_S)
        # The wire's load does not delay the nodes' links' signs of life.
        assert not any(isinstance(told.event, ev.LinkDown) for told in (*anna.told, *ben.told))
        time.sleep(STEP_S / 2)
        with faults.cable_out(slow.network, 1):
            time.sleep(OUT_S)

    def wait(anna: Agent, ben: Agent) -> None: ...

    with Lab(tmp_path_factory.mktemp("slow"), rate="20mbit", buffer_s=2.0) as slow:
        on_slow = trained(slow, tmp_path_factory.mktemp("script"), pull)
    with Lab(tmp_path_factory.mktemp("fast")) as fast:
        on_fast = trained(fast, tmp_path_factory.mktemp("script"), wait)

    print(f"steps told after {on_slow.steps_s} s, {on_slow.sent_bytes / 1e6:.0f} MB to the worker")
    assert on_slow.weights == on_fast.weights
    first_s, second_s, third_s = on_slow.steps_s
    # No faster than that cable; and data received before it was pulled was not sent again.
    assert second_s - first_s > STEP_S and third_s - second_s > STEP_S + OUT_S
    assert 2 <= on_slow.audited <= STEPS, "the first step and the last one"
    exchanged = on_slow.sent_bytes / STEP_BYTES
    assert STEPS + on_slow.audited < exchanged < STEPS + on_slow.audited + 0.4
