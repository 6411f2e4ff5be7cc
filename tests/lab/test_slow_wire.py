"""A wire on which a step takes most of a minute, and everything waits behind two seconds of it."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest

from core.vocabulary import events as ev
from core.vocabulary.commands import SetCodePolicy
from core.vocabulary.phases import Finished
from core.vocabulary.plan import RunSpec
from tests.lab import faults
from tests.lab.lab import Lab, pair
from tests.lab.laptops import weights
from tests.lab.network import BUFFER_S, RATE

SCRIPT = Path(__file__).parent / "scripts" / "large.py"
RATE_BYTES_S, STEPS, PARAMETERS = 20e6 / 8, 3, 25_005_001
LIMIT_S = 1200.0


@pytest.mark.lab
@pytest.mark.cluster
@pytest.mark.complete
@pytest.mark.timeout(2 * LIMIT_S)
def test_25_million_parameters_train_at_20_mbit(
    namespaces: None, tmp_path_factory: pytest.TempPathFactory
) -> None:
    results = []
    for name, rate, buffer_s in (("slow", "20mbit", 2.0), ("fast", RATE, BUFFER_S)):
        folder = tmp_path_factory.mktemp(name)
        shutil.copy(SCRIPT, folder)
        with Lab(tmp_path_factory.mktemp("homes"), hosts=2, rate=rate, buffer_s=buffer_s) as lab:
            anna, ben = lab.agent(0), lab.agent(1)
            assert ben.state.me is not None
            pair(anna, ben, ben.state.me.addresses[0])
            ben.do(SetCodePolicy(device=anna.device, policy="always"))
            before = faults.received_bytes(lab.network, 1)
            run = anna.train(
                RunSpec(
                    script=str(folder / SCRIPT.name),
                    devices=(ben.device,),
                    seed=7,
                    exchange="tls",
                    shares={anna.device: 16, ben.device: 16},
                )
            )
            began_s = time.monotonic()
            for agent in (anna, ben):
                assert agent.ends(run, LIMIT_S) == Finished()
            passed = faults.received_bytes(lab.network, 1) - before
            moments = [
                told.at_s - began_s
                for told in anna.told
                if isinstance(told.event, ev.MemberProgressed) and told.event.device == anna.device
            ]
            print(f"{name}: steps seen after {[round(at) for at in moments]} s, {passed / 1e6:.0f} MB to ben")
            assert passed > STEPS * 4 * PARAMETERS
            assert not any(isinstance(told.event, ev.LinkDown) for told in (*anna.told, *ben.told))
            assert len(set(weights(anna).values())) == 1
            results.append(set(weights(anna).values()))
            if name == "slow":
                # No faster than that cable.
                assert time.monotonic() - began_s > STEPS * 4 * PARAMETERS / RATE_BYTES_S
    assert results[0] == results[1]
