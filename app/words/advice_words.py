"""Advice if several laptops are hardly faster than one, worded for terminal or window."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from core.speed.sentences import WORTH, SpeedWords, compared, expected, times
from core.vocabulary import units
from core.vocabulary.ids import DeviceId
from core.vocabulary.plan import Plan
from core.vocabulary.progress import Advice, Expectation
from core.vocabulary.text import capitalised


class Face(NamedTuple):
    """What the terminal or window calls each option."""

    narrow_wire: str
    narrowest_wire: str
    rarely: str
    shares: str
    alone_here: str
    alone_there: str


TERMINAL = Face(
    narrow_wire="--wire bf16",
    narrowest_wire="--wire int8",
    rarely="--sync rare",
    shares="Leave out --share, and",
    alone_here="--solo",
    alone_there="--solo on {name}",
)
WINDOW = Face(
    narrow_wire="Options: gradients travel as",
    narrowest_wire="in the same place",
    rarely="Options: on slow networks, meet rarely",
    shares="Leave the shares under Roles open, and",
    alone_here="under Roles, set the others to “not in this run”",
    alone_there="start it there, with the others not in this run",
)


def advice_words(advice: Advice | None, face: Face) -> str:
    """``Use a cable, a faster network or a larger batch_size. Or train on anna alone (--solo).``"""
    if advice is None:
        return ""
    match advice.cause:
        case "unlike":
            faster = times(advice.slow_s / advice.fast_s)
            words = f"{advice.fastest} is {faster}× as fast as {advice.slowest}, which adds little."
        case "steps":
            words = (
                f"Steps are too short for an exchange in each: {advice.fastest} alone takes "
                f"{units.duration(advice.fast_s)}."
            )
            if advice.larger is not None:
                words += (
                    f" Use a larger batch_size ({_twice(advice, advice.larger)}), or set steps_per_execution."
                )
        case "wire" if advice.larger is not None:
            words = f"Use a cable, a faster network or a larger batch_size ({_twice(advice, advice.larger)})."
        case "wire":
            words = "Use a cable or a faster network."
        case "shares":
            words = f"{face.shares} each laptop gets as many rows as it can compute."
        case "load":
            words = "Use a larger batch_size, and close other programs on all laptops."
    nothing = advice.cause == "steps" and advice.larger is None
    inexact = _inexact(advice, face)
    words += f" {capitalised(inexact)}" if inexact and nothing else f" Or {inexact}" if inexact else ""
    if advice.together >= WORTH:
        return words
    how = face.alone_here if advice.here else face.alone_there.format(name=advice.alone)
    train = "Train" if advice.cause == "unlike" or (nothing and not inexact) else "Or train"
    return f"{words} {train} on {advice.alone} alone ({how})."


def _twice(advice: Advice, gain: float) -> str:
    return f"twice the rows: {compared(gain, advice.spread)}"


def _inexact(advice: Advice, face: Face) -> str:
    """What would help at the price of exactness, and how fast each is expected to be beside the fastest
    alone."""
    choices = [
        f"{does} ({option}: {compared(gain, advice.spread)})"
        for does, option, gain in (
            ("send half the bytes", face.narrow_wire, advice.narrow),
            ("send 8-bit numbers", face.narrowest_wire, advice.narrowest),
            ("meet rarely", face.rarely, advice.rarely),
        )
        if gain is not None
    ]
    return f"{' or '.join(choices)}; the result is then not that of one machine." if choices else ""


def speed_lines(said: SpeedWords, face: Face) -> list[str]:
    """The present or past speed, and advice."""
    return list(filter(None, (said.what, advice_words(said.advice, face))))


def expected_lines(expectation: Expectation | None, plan: Plan, names: Mapping[DeviceId, str]) -> list[str]:
    """Before the first step, for a terminal."""
    return speed_lines(expected(expectation, plan, names), TERMINAL)
