"""A laptop that sleeps while it is linked: a node that is stopped is one, to the others and to itself."""

from __future__ import annotations

import time

import pytest

from core.vocabulary import events as ev
from tests.lab.laptops import Laptops

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]
ASLEEP_S = 16.0


def test_a_laptop_that_itself_slept_does_not_blame_the_other(laptops: Laptops) -> None:
    anna, ben = laptops.anna, laptops.ben
    sinces = {agent: len(agent.told) for agent in (anna, ben)}
    began_s = time.monotonic()
    anna.process.suspend()
    try:
        silent = ben.hears(ev.LinkDown, lambda event: event.device == anna.device, since=sinces[ben]).event
        time.sleep(max(0.0, began_s + ASLEEP_S - time.monotonic()))
    finally:
        anna.process.resume()
    slept_s = time.monotonic() - began_s
    own = anna.hears(ev.LinkDown, lambda event: event.device == ben.device, since=sinces[anna]).event
    assert isinstance(own, ev.LinkDown) and isinstance(silent, ev.LinkDown)
    assert silent.problem.code == "link-silent" and "anna fell silent" in silent.problem.what
    assert own.problem.code == "link-slept", own.problem
    words = own.problem.what
    said_s = float(words.partition("stood still for ")[2].partition(" s,")[0])
    assert words.startswith("This laptop slept") and abs(said_s - slept_s) < 6, (words, slept_s)
    anna.until(lambda state: state.devices[ben.device].linked, "be linked again")
