"""What a click can do about a finding before the start, and about a result's advice. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from msgspec import structs

from app.models.argument_fields import name_of, value_of, with_value
from app.models.draft import RunDraft, as_then, split, taking_part
from app.models.shown_run import ShownRun
from core.speed.sentences import WORTH, achieved, compared
from core.vocabulary.answers import Declared, Finding
from core.vocabulary.errors import Problem
from core.vocabulary.ids import DeviceId
from core.vocabulary.progress import Advice
from core.vocabulary.state import State
from core.vocabulary.text import plain

_BATCH = ("--batch-size", "--batch_size", "--batch", "--bs")
"""Common names of a script's batch size option."""


class Offer(NamedTuple):
    """A button: its label, and the resulting draft. ``device``: the laptop with the versions wanted here;
    neither: it opens the Devices screen. ``installs``: that laptop is to install what it lacks."""

    words: str
    draft: RunDraft | None = None
    device: DeviceId | None = None
    installs: bool = False


class Check(Finding, frozen=True, kw_only=True):
    """A finding about the next run, with a button for each of its ``offers``."""

    offers: tuple[Offer, ...] = ()


def installing(installs: Iterable[DeviceId], state: State) -> tuple[Offer, ...]:
    """``installs``: laptops that lack packages and can install them."""
    devices = tuple(installs)
    me = state.me.device if state.me is not None else None
    known = [state.devices[each] for each in devices if each in state.devices]
    there = "there" if len(devices) == 1 else "on {}"
    words = {
        each.device: f"Install it {there.format(plain(each.shown_name, 40))}" for each in known if each.linked
    }
    if me is not None and me in devices:
        words[me] = "Install it here"
    return tuple(Offer(said, device=each, installs=True) for each, said in words.items())


def after(run: ShownRun, state: State) -> dict[str, RunDraft]:
    """What its result advises for the next run, by the words of a button."""
    if not run.own or run.entry is None or run.summary is None or run.plan is None:
        return {}
    advice = achieved(run.summary, run.plan).advice
    found = by_advice(advice, as_then(run.entry, state), state) if advice is not None else ()
    return {offer.words: offer.draft for offer in found if offer.draft is not None}


def by_advice(
    advice: Advice, draft: RunDraft, state: State, declared: Sequence[Declared] = ()
) -> Iterator[Offer]:
    """``declared``: the script's options, where they are known."""
    options = draft.options
    if advice.narrow is not None and options.wire == "f32":
        yield Offer("Send half the bytes", replace(draft, options=structs.replace(options, wire="bf16")))
    if advice.narrowest is not None and options.wire == "f32":
        yield Offer("Send 8-bit numbers", replace(draft, options=structs.replace(options, wire="int8")))
    if advice.rarely is not None and advice.rarely > 1 and options.sync == "exact":
        words = f"Meet rarely ({compared(advice.rarely, advice.spread)})"
        yield Offer(words, replace(draft, options=structs.replace(options, sync="rare")))
    if advice.cause == "shares" and draft.shares:
        yield Offer("Share by speed", replace(draft, shares={}))
    if advice.cause == "load" or advice.larger is not None:
        yield from _larger_batch(draft, declared)
    # Where even the slowest alone is faster than all, so is this one.
    alone_is_faster = advice.here or advice.fast_s > advice.slow_s * advice.together > 0
    if alone_is_faster and advice.together < WORTH:
        yield from alone(draft, state)


def alone(draft: RunDraft, state: State) -> Iterator[Offer]:
    others = set(taking_part(draft, state)) - {state.me.device if state.me is not None else None}
    if others:
        without = replace(draft, left_out=draft.left_out | others, roles={}, shares={})
        yield Offer("Train on this laptop alone", without)


def _larger_batch(draft: RunDraft, declared: Sequence[Declared]) -> Iterator[Offer]:
    """Twice the rows, where the script has an option for them."""
    words = split(draft.arguments)
    option = next((each for each in declared if each.takes and set(each.names) & set(_BATCH)), None)
    if option is None or isinstance(words, Problem):
        return
    rows = value_of(words, option)
    if rows.isascii() and rows.isdigit() and int(rows):
        twice = str(2 * int(rows))
        arguments = shlex.join(with_value(words, option, twice))
        yield Offer(f"Use {name_of(option)} {twice}", replace(draft, arguments=arguments))
