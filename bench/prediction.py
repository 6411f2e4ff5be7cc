"""What members expect before the first step, compared with what comes out: on links of three rates.

Also what an exact run says of other choices beforehand, compared with runs that were started so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from bench.engine.pair import Pair
from bench.result import Row, foreseen
from bench.wire.link import Link
from core.speed.choices import ESTIMATED, Choices, choices_s, spread
from core.vocabulary.options import Sync, Wire
from core.vocabulary.plausible import step_range
from core.vocabulary.progress import Expectation

LINKS = (936, 240, 100)
"""Mbit/s."""
MEMBERS = 2
LEAST_RARE = 4
"""Epochs of a fit with rare meetings: the one at an epoch's end counts only once the next reports steps."""


@dataclass(frozen=True, slots=True)
class Way:
    """A way to train. ``choice``: how an exact run's ``Choices`` call it; "" for that run itself."""

    title: str
    wire: Wire = "f32"
    sync: Sync = "exact"
    choice: str = ""


WAYS = {
    "exact": Way("exact"),
    "bf16": Way("half the bytes", wire="bf16", choice="narrow"),
    "int8": Way("8-bit numbers", wire="int8", choice="narrowest"),
    "rare": Way("rare", sync="rare", choice="rare"),
}


@dataclass(frozen=True, slots=True)
class Script:
    """``works``: what is trained, by way. ``half``: exact steps of half the rows. ``epochs``: of the fit that
    is predicted; it ends after one, and another trains as many as ``measured``."""

    title: str
    works: Mapping[str, str]
    half: str
    epochs: int
    measured: int


_MANY, _FEW = "5m-long-epochs", "5m-long-epochs:10"
SCRIPTS = (
    Script("digits CNN", {"exact": "digits", "rare": "digits"}, "digits/2", 60, 30),
    Script(
        "5 million parameters",
        {"exact": _FEW, "bf16": _FEW, "int8": _FEW, "rare": _MANY},
        "5m-long-epochs/2:10",
        3,
        1,
    ),
)


def measure() -> Iterator[Row]:
    for mbit in LINKS:
        with Link(mbit) as link:
            for script in SCRIPTS:
                found = {way: _trained(link, script, work, WAYS[way]) for way, work in script.works.items()}
                half, _ = _trained(link, script, script.half, WAYS["exact"], measured=0)
                yield from rows(f"{mbit} Mbit, {script.title}", found, half)


def _trained(
    link: Link, script: Script, work: str, way: Way, *, measured: int | None = None
) -> tuple[Expectation, float]:
    """What was expected, and a step's seconds then: after the time in which small steps are all audited."""
    if measured is None:
        measured = max(script.measured, LEAST_RARE if way.sync == "rare" else 0)
    with Pair("tandem", work, link=link, wire=way.wire, sync=way.sync, balance=True) as pair:
        pair.order(f"expect {script.epochs}")
        told = pair.answered()
        expectation = told.expectation
        if measured:
            pair.order(f"train {measured}")
            told = pair.answered()
    if expectation is None or told.step_s is None:
        raise RuntimeError(f"{work}: {'nothing was expected' if told.step_s else 'no step was timed'}")
    return expectation, told.step_s


def rows(what: str, found: Mapping[str, tuple[Expectation, float]], half: Expectation) -> Iterator[Row]:
    """``found``: by way, what was expected and a step's seconds; ``half``: expected of half the rows."""
    exact, exact_s = found["exact"]
    for way, (expectation, step_s) in found.items():
        title = f"{what}, {WAYS[way].title}"
        yield foreseen(f"{title}: expected", expectation.step_s, step_range(expectation), step_s)
        if choice := WAYS[way].choice:
            yield _chosen(f"{title}: said by the exact run", exact, choice, step_s)
    yield _chosen(f"{what}, exact: said by a run with half the rows", half, "larger", exact_s)


def _chosen(what: str, expectation: Expectation, choice: str, step_s: float) -> Row:
    choices: Choices = choices_s(expectation, MEMBERS)
    said_s: float = getattr(choices, choice)
    least, most = spread(expectation)
    return foreseen(what, said_s, (said_s / most / ESTIMATED, said_s / least * ESTIMATED), step_s)
