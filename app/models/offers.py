"""What a click can do about a warning before the start. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from msgspec import structs

from app.models import preflight
from app.models.argument_fields import name_of, value_of, with_value
from app.models.draft import RunDraft, candidates, split, taking_part, why_not
from app.words.device_words import may_match
from core.speed.sentences import WORTH, compared
from core.vocabulary.answers import Finding, PlanMade, ScriptRead
from core.vocabulary.errors import Problem
from core.vocabulary.ids import DeviceId
from core.vocabulary.progress import Advice
from core.vocabulary.state import State
from core.vocabulary.text import plain

_BATCH = ("--batch-size", "--batch_size", "--batch", "--bs")
"""Common names of a script's batch size option."""

_ALONE_HELPS = ("device-offline", "device-busy")
"""Codes of plans that fail because of the other laptops."""


class Offer(NamedTuple):
    """A button: its label, and the resulting draft. ``device``: the laptop with the versions wanted here;
    neither: it opens the Devices screen. ``installs``: that laptop is to install what it lacks."""

    words: str
    draft: RunDraft | None = None
    device: DeviceId | None = None
    installs: bool = False


Offers = Mapping[Finding, tuple[Offer, ...]]


def offers(draft: RunDraft, state: State, read: ScriptRead, plan: PlanMade | Problem | None) -> Offers:
    """Offers, by the line of ``preflight.lines`` that each belongs to."""
    found: dict[Finding, tuple[Offer, ...]] = {}
    if isinstance(plan, PlanMade) and plan.advice is not None and not draft.several:
        found[preflight.speed_line(plan)] = tuple(_by_advice(plan.advice, draft, state, read))
    if isinstance(plan, Problem) and plan.code in _ALONE_HELPS:
        found[preflight.told("error", plan)] = tuple(_alone(draft, state))
    found.update(_installing(plan, state))
    found.update(_by_script(draft, state, read))
    for device in candidates(state):
        if why_not(device) and may_match(state.me, device):
            found[preflight.absent_line(device)] = (Offer("Have the same here…", device=device.device),)
    for line in (*preflight.missing_lines(draft, state), preflight.ALONE):
        found[line] = (Offer("Show Devices"),)
    return found


def _installing(plan: PlanMade | Problem | None, state: State) -> Iterator[tuple[Finding, tuple[Offer, ...]]]:
    """Where laptops lack packages, and can install them."""
    warned = plan.warnings if isinstance(plan, PlanMade) else ()
    lacks = [(preflight.told("warning", each), each.installs) for each in warned]
    if isinstance(plan, Problem):
        lacks = [(preflight.told("error", plan), plan.installs)]
    me = state.me.device if state.me is not None else None
    for line, installs in lacks:
        names = {each: state.devices[each].shown_name for each in installs if _is_linked(each, state)}
        there = "there" if len(installs) == 1 else "on {}"
        words = {each: f"Install it {there.format(plain(name, 40))}" for each, name in names.items()}
        if me is not None and me in installs:
            words[me] = "Install it here"
        if words:
            found = (Offer(said, device=each, installs=True) for each, said in words.items())
            yield line, tuple(found)


def _is_linked(device: DeviceId, state: State) -> bool:
    return device in state.devices and state.devices[device].linked


def _by_script(
    draft: RunDraft, state: State, read: ScriptRead
) -> Iterator[tuple[Finding, tuple[Offer, ...]]]:
    line, several = preflight.argument_line(read, draft), replace(draft, several=True)
    if line is not None and preflight.argument_line(read, several) is None:
        yield line, (Offer("Try several values", several),)
    for each in read.mistakes:
        if each.code in preflight.SHARES_NOTHING:
            yield preflight.mistake_line(each), tuple(_alone(draft, state))


def _by_advice(advice: Advice, draft: RunDraft, state: State, read: ScriptRead) -> Iterator[Offer]:
    options = draft.options
    if advice.narrow is not None and options.wire == "f32":
        yield Offer("Send half the bytes", replace(draft, options=structs.replace(options, wire="bf16")))
    if advice.narrowest is not None and options.wire == "f32":
        yield Offer("Send 8-bit numbers", replace(draft, options=structs.replace(options, wire="int8")))
    if advice.rarely is not None and options.sync == "exact":
        words = f"Meet rarely ({compared(advice.rarely)})"
        yield Offer(words, replace(draft, options=structs.replace(options, sync="rare")))
    if advice.cause == "shares" and draft.shares:
        yield Offer("Share by speed", replace(draft, shares={}))
    if advice.cause in ("steps", "wire", "load"):
        yield from _larger_batch(draft, read)
    # Where even the slowest alone is faster than all, so is this one.
    alone = advice.here or advice.fast_s > advice.slow_s * advice.together > 0
    if alone and advice.together < WORTH:
        yield from _alone(draft, state)


def _alone(draft: RunDraft, state: State) -> Iterator[Offer]:
    others = set(taking_part(draft, state)) - {state.me.device if state.me is not None else None}
    if others:
        alone = replace(draft, left_out=draft.left_out | others, roles={}, shares={})
        yield Offer("Train on this laptop alone", alone)


def _larger_batch(draft: RunDraft, read: ScriptRead) -> Iterator[Offer]:
    """Twice the rows, where the script has an option for them."""
    words = split(draft.arguments)
    option = next((each for each in read.options if each.takes and set(each.names) & set(_BATCH)), None)
    if option is None or isinstance(words, Problem):
        return
    rows = value_of(words, option)
    if rows.isascii() and rows.isdigit() and int(rows):
        twice = str(2 * int(rows))
        arguments = shlex.join(with_value(words, option, twice))
        yield Offer(f"Use {name_of(option)} {twice}", replace(draft, arguments=arguments))
