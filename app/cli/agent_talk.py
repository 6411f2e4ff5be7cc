"""An agent's messages and questions on its terminal: pairing codes and permission to run code."""

from __future__ import annotations

import asyncio
import os
import shlex
from collections.abc import Callable, Iterable, Sequence
from typing import Literal, NamedTuple, Self

from app.cli import pairing
from app.cli.prompts import Asker
from app.cli.run_display import FetchLines, Plain
from app.cli.screen import Screen
from app.follower import Follower
from app.words import run_words
from app.words.device_names import find, name_of, names_of, other_names
from app.words.device_words import (
    changed_words,
    data_words,
    deed_lines,
    opened_words,
    reach_words,
    takes_words,
)
from core.runtime.background import Background
from core.vocabulary import events as ev
from core.vocabulary.answers import Change, Refused, RequestRead
from core.vocabulary.commands import AnswerConsent, Decision, LookAtRequest
from core.vocabulary.errors import TandemError
from core.vocabulary.ids import DeviceId, RunId, short
from core.vocabulary.lookalikes import caution
from core.vocabulary.node import NodeFace
from core.vocabulary.phases import Failed
from core.vocabulary.state import State
from core.vocabulary.text import plain, spelled

DECISIONS: dict[str, Decision | Literal["look"]] = {
    "once": "once",
    "always": "always",
    "no": "no",
    "look": "look",
}
LISTED_FILES = 10
CHANGES: dict[Change, str] = {
    "": "",
    "new": ": new",
    "changed": ": changed since you allowed it",
    "same": ": as you allowed it",
    "gone": ": no longer there",
}


class AllowOptions(NamedTuple):
    """``devices``: answer their questions with *once*. ``without_walls``: even if this system has no
    walls."""

    devices: Sequence[str] = ()
    without_walls: bool = False


class Allowed:
    """While entered, answers consent questions from the devices named by ``--allow`` with *once*."""

    def __init__(self, node: NodeFace, allow_options: AllowOptions) -> None:
        self._node = node
        self._allow_options = allow_options
        self._background = Background()
        self._leave: Callable[[], None] | None = None

    def __enter__(self) -> Self:
        if self._allow_options.devices:
            self._leave = self._node.subscribe(self._on_event)
        return self

    def __exit__(self, *failure: object) -> None:
        if self._leave is not None:
            self._leave()

    def _on_event(self, event: ev.Event, state: State) -> None:
        if isinstance(event, ev.ConsentAsked) and is_allowed(event, state, self._allow_options):
            command = AnswerConsent(run=event.run, decision="once")
            self._background.start("allowing a run", self._node.submit(command))


def is_allowed(asked: ev.ConsentAsked, state: State, allow_options: AllowOptions) -> bool:
    """Whether ``--allow`` covers the request: never access beyond the walls' own folders and data folders."""
    if asked.walls == "none" and not allow_options.without_walls:
        return False
    folders = state.me.settings.data.values() if state.me is not None else ()
    data = set(map(os.path.realpath, folders))
    opened = all(not each.write and each.path in data for each in asked.opened)
    return opened and allows(state, allow_options.devices, asked.device)


def allows(state: State, names: Iterable[str], device: DeviceId) -> bool:
    """Whether one of ``names`` means this paired device unambiguously."""
    for name in names:
        try:
            found = find(state, name, paired=True)
        except TandemError:
            continue  # Several devices have this name: it is ambiguous.
        if found is not None and found.device == device:
            return True
    return False


class AgentTalk:
    """Runs until the node ends."""

    def __init__(self, follower: Follower, asker: Asker, screen: Screen, allow_options: AllowOptions) -> None:
        self._follower = follower
        self._asker = asker
        self._screen = screen
        self._allow_options = allow_options
        self._run, self._fetch = Plain(screen), FetchLines(screen)
        self._turn = asyncio.Lock()
        """One question at a time."""
        self._pairing: asyncio.Task[None] | None = None
        self._consents: dict[RunId, asyncio.Task[None]] = {}

    async def run(self) -> None:
        self._say_ready(self._follower.state)
        try:
            while True:
                event, state = await self._follower.next()
                self._on_event(event, state)
        finally:
            tasks = [*self._consents.values(), *([self._pairing] if self._pairing else [])]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _say_ready(self, state: State) -> None:
        if state.me is None:
            return
        at = ", ".join(state.me.addresses) or "no network"
        self._screen.say(f"{plain(state.me.name, 63)} ({short(state.me.device)}) is ready at {at}.", "bold")
        self._screen.say("Other laptops on this network can find it now. Press Ctrl-C to end it.")

    def _on_event(self, event: ev.Event, state: State) -> None:
        say = self._screen.say
        match event:
            case ev.DeviceFound() if not state.devices[event.device].paired:
                say(f"Found {plain(event.name, 40)} ({short(event.device)}), not paired.")
            case ev.LinkUp() if state.devices[event.device].paired:
                say(f"Connected with {name_of(state, event.device)}.")
                if event.problem is not None:
                    self._screen.problem(event.problem)
            case ev.LinkDown() if (known := state.devices.get(event.device)) is not None and known.paired:
                say(f"{name_of(state, event.device)}: {plain(str(event.problem), 400)}")
            case ev.NoticeRaised():
                self._screen.problem(event.problem)
            case ev.PairingBegan() if event.incoming:
                say(f"{plain(event.name, 40)} at {plain(event.address, 60)} wants to pair.")
            case ev.PairingCodeShown():
                if event.warning is not None:
                    say(plain(str(event.warning), 600), "bold red")
                self._pairing = asyncio.create_task(
                    self._compare(event.name, event.code), name="agent-pairing"
                )
            case ev.PairingEnded():
                if self._pairing is not None:
                    self._pairing.cancel()
                    self._pairing = None
                if event.problem is not None:
                    self._screen.problem(event.problem)
                elif event.device is not None:
                    say(f"Paired with {name_of(state, event.device)}.", "bold green")
            case ev.ConsentAsked():
                self._on_consent_asked(event, state)
            case ev.ConsentSettled():
                if (asking := self._consents.pop(event.run, None)) is not None:
                    asking.cancel()
                say(f"Run {event.run} {'is allowed' if event.allowed else 'is not allowed'} here.")
            case ev.JoinProgressed():
                self._fetch(event, state)
            case ev.RunSummarised() if state.run is not None:
                names = names_of(state, state.run.members)
                for line in run_words.summary_lines(event.summary, names, "", state.run.plan):
                    say(line)
            case ev.RunPhaseChanged(phase=Failed(problem=problem)):
                self._run.on_event(event, state)
                self._screen.problem(problem)
            case _:
                self._run.on_event(event, state)

    def _on_consent_asked(self, event: ev.ConsentAsked, state: State) -> None:
        consent = next(consent for consent in state.consents if consent.run == event.run)
        name = name_of(state, event.device)
        for line in consent_lines(consent, name, state):
            self._screen.say(line)
        if is_allowed(event, state, self._allow_options):
            self._screen.say(f"Allowed, because {name} was named with --allow.")
            return
        self._consents[event.run] = asyncio.create_task(self._decide(event.run, name), name="agent-consent")

    async def _compare(self, name: str, code: str) -> None:
        async with self._turn:
            await pairing.compare(self._follower.node, self._asker, self._screen, name, code)

    async def _decide(self, run: RunId, name: str) -> None:
        async with self._turn:
            decision = await decide(self._follower.node, self._asker, self._screen, run, name)
        if decision is None:
            self._screen.say(
                "Refused: nobody can answer here, because the input has ended. "
                "Use --allow DEVICE, or --jsonl."
            )
        await self._follower.node.submit(AnswerConsent(run=run, decision=decision or "no"))


async def decide(node: NodeFace, asker: Asker, screen: Screen, run: RunId, name: str) -> Decision | None:
    """The user's decision about a request whose lines are already shown; None if nobody can answer."""
    question = f"May {name} run this here? always: this device may run anything here from now on."
    while (decision := await asker.ask(question, DECISIONS)) == "look":
        answer = await node.submit(LookAtRequest(run=run))
        if isinstance(answer, RequestRead):
            for line in look_lines(answer):
                screen.say(line)
        elif isinstance(answer, Refused):
            screen.problem(answer.problem)
    return decision


def look_lines(read: RequestRead) -> list[str]:
    """A request's files: what changed since the last approval, or their texts if there was none."""
    lines = [words for words, _ in deed_lines(read.files)]
    for file in read.files:
        lines.append(f"--- {spelled(file.path)}, {file.size:,} bytes{CHANGES[file.change]}")
        if file.note:
            lines.append(f"  {file.note}")
        if file.change not in ("same", "gone"):
            shown = file.diff or file.text
            lines += (
                ["  (not text, or too large to send before the yes)"] if shown is None else shown.split("\n")
            )
    return lines


def shell_words(words: Iterable[str]) -> str:
    return " ".join(shlex.quote(spelled(word)) for word in words)


def consent_lines(consent: ev.ConsentAsked, name: str, state: State) -> list[str]:
    """Who wants to run what: script, arguments, files with their sizes, and the project's digest.

    Nothing is shortened or left out: every argument's full text and its boundaries are part of the consent.
    """
    total = sum(file.size for file in consent.files)
    sets = consent.argument_sets
    words = shell_words((consent.script, *(() if sets else consent.arguments)))
    lines = [f"{name} ({short(consent.device)}) wants to run {words} on this laptop."]
    if sets:
        lines.append(f"It will be run with {len(sets)} sets of arguments, one after another:")
        lines.extend(f"  {shell_words(each) or '(none)'}" for each in sets)
    if careful := caution(name, other_names(state, consent.device)):
        lines.append(careful)
    if consent.changed:
        lines.append(
            f"It differs from what was allowed here before. {changed_words(consent.differs, consent.beyond)}"
        )
    lines.append(f"{len(consent.files)} files, {total:,} bytes, project {short(consent.project)}:")
    lines.extend(f"  {file.size:>12,}  {spelled(file.path)}" for file in consent.files[:LISTED_FILES])
    if len(consent.files) > LISTED_FILES:
        lines.append(f"  and {len(consent.files) - LISTED_FILES} more")
    if consent.checkpoint_bytes:
        lines.append(
            f"It resumes from a checkpoint of {consent.checkpoint_bytes:,} bytes, "
            "which is sent unless it is here."
        )
    lines += filter(None, (*data_words(consent.data), takes_words(consent)))
    lines.append(reach_words(consent.walls, consent.gaps, consent.network))
    lines.extend(filter(None, opened_words(consent.opened).split("\n")))
    return lines
