"""How fast several laptops are compared with one, in sentences: expected and measured. Pure.

The baselines are the fastest member alone, and the starter alone if that is another laptop.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite

from msgspec.structs import replace

from core.speed.choices import ESTIMATED, choices_s, ideal_s, spread
from core.vocabulary import units
from core.vocabulary.ids import DeviceId, short
from core.vocabulary.plan import Plan, ranks
from core.vocabulary.plausible import is_step_time, sound, sound_summary
from core.vocabulary.progress import Advice, Audits, Blamed, EpochEnd, Expectation, Summary
from core.vocabulary.text import capitalised, plain

WORTH = 1.1
"""Speed-up below which a second laptop is hardly worth the trouble."""
RARELY = 1.3
"""Speed-up below which rare meetings are offered, if they would be faster."""
SLOWER = 0.9
"""Speed-up above which the difference is stated in per cent."""
UNEVEN = 1.25
TINY_S = 0.02
"""A step shorter than this on the fastest member hardly justifies an exchange of its own."""
SMALL_BYTES = 500_000
"""Bytes sent in a step: below this, latency matters instead of bandwidth."""

_COUNTS = {2: "Two", 3: "Three", 4: "Four", 5: "Five"}
_MUCH_BYTES = 100_000_000
"""Memory below this is not mentioned."""
Names = Mapping[DeviceId, str]


@dataclass(frozen=True, slots=True)
class SpeedWords:
    """A sentence about speed; false if there is none. ``advice``: if several laptops are hardly faster than
    one."""

    what: str = ""
    advice: Advice | None = None

    def __bool__(self) -> bool:
        return bool(self.what)


def steps_words(summary: Summary) -> str:
    """``2,000 steps in 1 epoch``, ``2,600 steps in 1.3 epochs``; "" without a step."""
    if not summary.steps:
        return ""
    epochs = "1 epoch" if summary.epochs == 1 else f"{summary.epochs:,} epochs"
    if summary.part is None:
        return f"{summary.steps:,} steps in {epochs}"
    of = "" if summary.part.steps_in_epoch is None else f" of {summary.part.steps_in_epoch:,}"
    part = f"{summary.part.steps:,}{of} steps"
    if summary.epochs:
        if not summary.part.steps_in_epoch:
            return f"{summary.steps:,} steps: {epochs}, and {part} of the next"
        # Rounded down: an epoch that was not finished does not count as one.
        tenths = 10 * summary.part.steps // summary.part.steps_in_epoch
        return f"{summary.steps:,} steps in {summary.epochs:,}.{min(tenths, 9)} epochs"
    return f"{part} of the first epoch" if summary.steps == summary.part.steps else f"{summary.steps:,} steps"


def audits_words(audits: Audits) -> str:
    """How many of the shared steps were also computed whole for comparison."""
    if not audits.audited:
        why = f": {audits.why}" if audits.why else ""
        return f"None of {audits.steps:,} shared steps was compared with one laptop's{why}"
    some = f" (those of a model were not: {audits.why})" if audits.why else ""
    return f"{audits.audited:,} of {audits.steps:,} shared steps were compared with one laptop's{some}"


def inexact_words(summary: Summary) -> str:
    """How the user chose to train inexactly: ``met every 32 steps: not the result of one machine``; ""
    where members met in every step, and sent all bits."""
    chosen = chosen_words(summary)
    return f"{chosen}: not the result of one machine" if chosen else ""


def chosen_words(summary: Summary) -> str:
    """``met every 32 steps``, ``gradients sent in 8 bits``, both, or ""."""
    met = f"met every {units.number_of(summary.met_every, 'step')}" if summary.met_every else ""
    sent = f"gradients sent in {summary.sent_bits} bits" if summary.sent_bits else ""
    return ", ".join(filter(None, (met, sent)))


def epoch_words(epoch: EpochEnd) -> str:
    """``3/10``, or, for a broken-off epoch, ``3/10, broken off after 35 of 2,000 steps``."""
    number = f"{epoch.epoch + 1}/{epoch.epochs}"
    if epoch.whole:
        return number
    of = "" if epoch.steps_in_epoch is None else f" of {epoch.steps_in_epoch:,}"
    return f"{number}, broken off after {epoch.steps or 0:,}{of} steps"


def expected(expectation: Expectation | None, plan: Plan, names: Names | None = None) -> SpeedWords:
    """Before the first step: ``Two laptops: about 1.7× as fast as anna alone; the wire takes …``."""
    if expectation is None or not sound(expectation, plan) or len(expectation.alone_s) < 2:
        return SpeedWords()
    devices = ranks(plan)
    laptops = len(set(devices))
    # Each graphics card of a laptop counts as a member.
    count, kind = (laptops, "laptops") if laptops > 1 else (len(devices), "cards")
    wire = _wire(expectation.wire_s, expectation.step_s, expectation.wire_bytes)
    what = f"{_COUNTS.get(count, str(count))} {kind}: {_against(expectation, plan, names)}; {wire}."
    if expectation.audit_bytes >= _MUCH_BYTES:
        memory = units.size(expectation.audit_bytes)
        what += f" Comparing a step with one laptop's needs up to {memory} more memory on one of them."
    return SpeedWords(what, advice(expectation, plan, names))


def achieved(summary: Summary, plan: Plan, names: Names | None = None) -> SpeedWords:
    """After a run: the expected and the measured speed, the difference, and the time of a step. Steps too
    small to share are not compared."""
    before, after = summary.expectation, _outcome(summary, plan)
    if before is None or after is None or summary.settled is None:
        return SpeedWords()
    base = _baselines(before, plan)[0]
    name, alone_s = _member(base, plan, names), before.alone_s[base]
    what = f"A step took {units.duration(after.step_s)}"
    if _says_something(after):
        against = _both(alone_s / before.step_s, alone_s / after.step_s, name, spread(before))
        what = f"{against} ({_off(before.step_s, after.step_s)}). {what}"
    rows = summary.settled.samples_s
    what += f", {units.samples(rows)}" if rows else ""
    wire = ""
    if summary.settled.wire_s is not None:
        wire = _wire(after.wire_s, after.step_s, after.wire_bytes, "was")
    return SpeedWords(f"{what}{f'; {wire}' if wire else ''}.", advice(after, plan, names))


def last_time(summary: Summary, plan: Plan, names: Names | None = None) -> SpeedWords:
    """Before another run of the same script on the same laptops: how fast the last one was."""
    after = _outcome(summary, plan)
    helps = None if after is None else advice(after, plan, names)
    if after is not None and _says_something(after):
        return SpeedWords(f"Last time on these laptops: {_against(after, plan, names)}.", helps)
    rows = summary.speed_samples_s
    if rows is None or not isfinite(rows) or rows <= 0:
        return SpeedWords()
    where = (
        "these laptops" if len(plan.members) > 1 else f"{_name(plan.members[0].device, plan, names)} alone"
    )
    return SpeedWords(f"Last time on {where}: {units.samples(rows)}.", helps)


def speed_up(summary: Summary) -> float | None:
    """The measured speed relative to the fastest member alone; None where it is not known, or says nothing
    because steps are too small to share."""
    if summary.expectation is None or summary.settled is None or len(summary.expectation.alone_s) < 2:
        return None
    alone_s, step_s = min(summary.expectation.alone_s), summary.settled.step_s
    if not (is_step_time(alone_s) and is_step_time(step_s)):
        return None
    return alone_s / step_s if _says_something(replace(summary.expectation, step_s=step_s)) else None


def advice(expectation: Expectation, plan: Plan, names: Names | None = None) -> Advice | None:
    """Advice for the likely cause; None if the laptops together are clearly faster."""
    alone_s, step_s = expectation.alone_s, expectation.step_s
    fast, slow = min(alone_s), max(alone_s)
    together = fast / step_s
    if together >= RARELY:
        return None
    best = alone_s.index(fast)
    least_s = ideal_s(expectation)
    cause: Blamed = "load"
    if fast / least_s < WORTH:
        cause = "unlike"
    elif too_small(expectation):
        cause = "steps"
    elif min(expectation.wire_s, step_s) >= (step_s - least_s) / 2:
        cause = "wire"
    elif not plan.balance and plan.strategy == "managed" and slow >= UNEVEN * fast:
        cause = "shares"
    choices = choices_s(expectation, len(plan.members))
    narrow = narrowest = rarely = larger = None
    if cause == "wire" and plan.wire == "f32":
        narrow, narrowest = fast / choices.narrow, fast / choices.narrowest
    if plan.strategy == "managed" and plan.sync == "exact":
        rarely = fast / choices.rare
    if cause in ("steps", "wire"):
        larger = 2 * fast / choices.larger
    if together >= WORTH and not (rarely and rarely >= max(RARELY, WORTH * together)):
        return None
    # On a slow network all choices are compared; elsewhere rare meetings are named only if they gain enough.
    if rarely and rarely <= (together if cause == "wire" else max(WORTH, WORTH * together)):
        rarely = None
    laptop = ranks(plan)[best]
    least, most = spread(expectation)
    return Advice(
        cause=cause,
        alone=_name(laptop, plan, names),
        here=laptop == plan.starter,
        fastest=_member(best, plan, names),
        slowest=_member(alone_s.index(slow), plan, names),
        fast_s=fast,
        slow_s=slow,
        together=together,
        spread=(least / ESTIMATED, most * ESTIMATED),
        narrow=_gain(narrow),
        narrowest=_gain(narrowest),
        rarely=_gain(rarely),
        larger=_gain(larger),
    )


def _gain(speed: float | None) -> float | None:
    """A choice's speed beside the fastest laptop alone, unless that one stays faster."""
    return speed if speed is not None and speed > 1 else None


def too_small(expectation: Expectation) -> bool:
    """Whether steps are so short, and send so little, that a meeting's latency costs more than its bytes."""
    return min(expectation.alone_s) < TINY_S and expectation.wire_bytes < SMALL_BYTES


def _says_something(measured: Expectation) -> bool:
    """Whether its speed beside one laptop's holds for larger steps of the same model, too."""
    return min(measured.alone_s) >= measured.step_s or not too_small(measured)


def wire_words(wire_s: float | None, step_s: float | None, sent_bytes: int | None) -> str:
    """``22 % of each step is network transfer (1.2 MB each way)``; ``""`` where it is not known."""
    if wire_s is None or step_s is None or not (isfinite(wire_s) and isfinite(step_s)) or step_s <= 0:
        return ""
    return capitalised(_wire(wire_s, step_s, sent_bytes or 0))


def times(ratio: float) -> str:
    """``1.7``, ``12``, ``0.03``: no more digits than a measurement of seconds has."""
    if ratio < 0.095:
        return f"{ratio:.1g}"
    return f"{ratio:.1f}" if ratio < 9.95 else f"{ratio:,.0f}"


def _outcome(summary: Summary, plan: Plan) -> Expectation | None:
    """The final measurement in the form of an expectation."""
    before, settled = summary.expectation, summary.settled
    if before is None or settled is None or len(before.alone_s) < 2 or not sound_summary(summary, plan):
        return None
    wire_s = before.wire_s if settled.wire_s is None else settled.wire_s
    wire_bytes = before.wire_bytes if settled.wire_bytes is None else settled.wire_bytes
    return replace(before, step_s=settled.step_s, step_range_s=(), wire_s=wire_s, wire_bytes=wire_bytes)


def _against(expectation: Expectation, plan: Plan, names: Names | None) -> str:
    """``about 1.3× as fast as ben alone and 2.9 times as fast as anna alone``."""
    either = spread(expectation)
    said = [
        (expectation.alone_s[rank] / expectation.step_s, _member(rank, plan, names))
        for rank in _baselines(expectation, plan)
    ]
    words = than(*said[0], either)
    for gain, name in said[1:]:
        joint = ", but " if said[0][0] < WORTH <= gain else " and "
        words += joint + than(gain, name, either).removeprefix("about ")
    return words


def _baselines(expectation: Expectation, plan: Plan) -> tuple[int, ...]:
    """Ranks to compare with: the fastest, then the starter's. If nearly equal: only the starter's."""
    devices, alone_s, step_s = ranks(plan), expectation.alone_s, expectation.step_s
    best = alone_s.index(min(alone_s))
    mine = best
    if plan.starter in devices and devices[best] != plan.starter:
        mine = devices.index(plan.starter)
    if compared(alone_s[best] / step_s) == compared(alone_s[mine] / step_s):
        return (mine,)
    return best, mine


def _both(before: float, after: float, name: str, ranging: Sequence[float]) -> str:
    """``Expected 1.5× (1.3 to 1.7×), measured 1.4× the speed of anna alone``; for a slower run, how much
    slower."""
    ends = before * ranging[0], before * ranging[1]
    if max(before, after) < 0.95:
        known = _in_brackets(_ends(1 / ends[0], 1 / ends[1]))
        slower = f"{times(1 / after)}× slower than {name} alone"
        return f"Expected {times(1 / before)}× slower{known}, measured {slower}"
    known = _in_brackets(_ends(*ends))
    return f"Expected {times(before)}×{known}, measured {times(after)}× the speed of {name} alone"


def than(gain: float, name: str, ranging: Sequence[float] = ()) -> str:
    """``about 1.7× as fast as anna alone (1.5 to 1.8×)``, ``2.1× slower than anna alone``.

    ``ranging``: the ``spread`` of an ``Advice``; adds the range.
    """
    words = compared(gain)
    joint = "than" if words.endswith("er") else "as"
    return f"{words} {joint} {name} alone{_in_brackets(_range(gain, ranging))}"


def compared(gain: float, ranging: Sequence[float] = ()) -> str:
    """``about 1.7× as fast, 1.5 to 1.8×``, ``only 8 % faster``, ``2.1× slower``: a speed ÷ another.

    ``ranging``: the ``spread`` of an ``Advice``; adds the range.
    """
    if gain >= WORTH:
        words = f"about {times(gain)}× as fast"
    elif gain >= 1.005:
        words = f"only {100 * (gain - 1):.0f} % faster"
    elif gain > 0.995:
        words = "no faster"
    elif gain > SLOWER:
        words = f"{100 * (1 - gain):.0f} % slower"
    else:
        words = f"{times(1 / gain)}× slower"
    return ", ".join(filter(None, (words, _range(gain, ranging))))


def _range(gain: float, ranging: Sequence[float]) -> str:
    """``1.5 to 1.8×``: the range of a speed ÷ another, or of how many times slower it is."""
    if len(ranging) != 2:
        return ""
    low, high = (gain * each for each in ranging)
    if high <= SLOWER:
        return _ends(1 / low, 1 / high)
    return _ends(low, high, "×" if low >= WORTH else "× its speed")


def _ends(one: float, other: float, unit: str = "×") -> str:
    low, high = times(min(one, other)), times(max(one, other))
    return "" if low == high else f"{low} to {high}{unit}"


def _in_brackets(words: str) -> str:
    return f" ({words})" if words else ""


def _wire(wire_s: float, step_s: float, sent_bytes: int, verb: str = "is") -> str:
    part = 100 * min(1.0, max(0.0, wire_s / step_s))
    shown = f"{part:.0f} %" if part >= 1 or part == 0 else "less than 1 %"
    return f"{shown} of each step {verb} network transfer" + (
        f" ({units.size(sent_bytes)} each way)" if sent_bytes > 0 else ""
    )


def _off(expected_s: float, step_s: float) -> str:
    """How far the time of a step was from the expectation."""
    longer = step_s / expected_s - 1
    if abs(longer) < 0.015:
        return "as expected"
    if longer < 0:
        return f"each step {-100 * longer:.0f} % shorter than expected"
    if longer < 1:
        return f"each step {100 * longer:.0f} % longer than expected"
    return f"each step {times(1 + longer)}× as long as expected"


def _member(rank: int, plan: Plan, names: Names | None) -> str:
    """A laptop's name; with several graphics cards, each is a member."""
    device = ranks(plan)[rank]
    name = _name(device, plan, names)
    return f"one card of {name}" if ranks(plan).count(device) > 1 else name


def _name(device: DeviceId, plan: Plan, names: Names | None) -> str:
    known = (names or {}).get(device) or next((m.name for m in plan.members if m.device == device), "")
    return plain(known, 40) or short(device)
