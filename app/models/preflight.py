"""Checks before a run: each line states a finding, and a failing one its fix. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace as replace_draft
from typing import Literal, NamedTuple

from msgspec.structs import replace

from app.models import data_folders, offers
from app.models.draft import RunDraft, candidates, sets_of, taking_part, why_not
from app.models.offers import Check, Offer
from app.words.advice_words import WINDOW, advice_words
from app.words.device_names import name_of
from app.words.device_words import may_match
from app.words.run_words import joining_words, outcome_words, reading_words
from core.doctor.files import LITTLE_BYTES, TOO_LITTLE_BYTES
from core.project import only_here
from core.script.arguments import refused
from core.script.mistakes import BATCHES, KERAS_TUNER, UNKEPT
from core.vocabulary import units
from core.vocabulary.access import is_within
from core.vocabulary.answers import Finding, PlanMade, ScriptRead
from core.vocabulary.errors import Problem
from core.vocabulary.ids import RunId
from core.vocabulary.state import Device, State
from core.vocabulary.text import listed, plain

_Level = Literal["ok", "warning", "error"]
_FROM_DOCTOR = ("disk", "disk-low", "disk-full")
ONLY_HERE = only_here.CODE
"""Code of lines whose data can be sent along."""
SHARES_NOTHING = ("script-shares-nothing", KERAS_TUNER)
_NO_HINDRANCE = ("network", "doctor")
"""Doctor topics that do not block a run: links show better who can be reached, and a run alone needs
nobody."""
BUSY = "busy"
"""Code of the line that another run keeps this one waiting: no fault of the form."""
ACCEPTED = "differences-accepted"
"""The line that can be withdrawn."""
_ALONE_HELPS = ("device-offline", "device-busy")
"""Codes of plans that fail because of the other laptops."""
_SHOW_DEVICES = Offer("Show Devices")


def lines(
    draft: RunDraft,
    state: State,
    read: ScriptRead,
    plan: PlanMade | Problem | None,
    findings: Sequence[Finding],
) -> list[Finding]:
    """Each is a ``Check`` or one of the doctor's. ``plan`` None: it is being made."""
    here = taking_part(draft, state)
    together = len(here) > 1
    found: list[Finding] = [
        *_script(read, draft, state, plan),
        *_arguments(read, draft),
        *_devices(draft, state),
        *_project(read, together),
        *(_accepted(read, state, draft) if together else ()),
    ]
    found += [finding for finding in findings if _matters(finding)]
    found += _disk_lines([device for device in candidates(state) if device.device in here], read.total_bytes)
    if isinstance(plan, PlanMade):
        found += [_told("warning", each, state) for each in plan.warnings]
    if isinstance(plan, Problem):
        found.append(_told("error", plan, state, draft))
    elif draft.several:
        found.append(_line("ok", "trials", "Each trial trains on one laptop alone, at its full speed."))
    else:
        found.append(_speed(draft, state, read, plan))
    if state.busy:
        found.append(_line("error", BUSY, "A run is under way.", "Wait until it has ended, or stop it."))
    return found


def being_read(draft: RunDraft, state: State) -> str:
    """Progress of reading its files; ``""`` if that is quick."""
    reading = state.reading
    return "" if reading is None or reading.script != draft.script else reading_words(reading)


def ready(found: Sequence[Finding], plan: PlanMade | Problem | None) -> bool:
    """Whether Train may be pressed."""
    return isinstance(plan, PlanMade) and all(finding.level != "error" for finding in found)


def is_sealed(draft: RunDraft, read: ScriptRead, made: PlanMade | None) -> bool:
    """Whether the run's trainers are sealed off. Forbidden downloads stay visible until there is a plan."""
    sealed = made is not None and made.plan.exchange == "sealed"
    return (draft.strategy or read.kind) == "own" and (sealed or not draft.options.downloads)


def waits_only(found: Sequence[Finding]) -> bool:
    """Whether nothing but another run prevents the start."""
    return {finding.code for finding in found if finding.level == "error"} == {BUSY}


class Headline(NamedTuple):
    """A one-line summary, and a second line about what will happen. ``kind``: a label's."""

    words: str
    kind: str
    summary: str


def headline(
    draft: RunDraft, state: State, read: ScriptRead, plan: PlanMade | Problem, found: Sequence[Finding]
) -> Headline:
    errors = sum(finding.level == "error" for finding in found)
    warnings = sum(finding.level == "warning" for finding in found)
    if waits_only(found) and not isinstance(plan, Problem):
        return Headline("Not yet: a run is under way", "warning-heading", "")
    if errors or isinstance(plan, Problem):
        return Headline(f"Not ready: {units.number_of(max(errors, 1), 'problem')}", "bad-heading", "")
    count = len(taking_part(draft, state))
    who = "this laptop alone" if count < 2 else f"{count} laptops"
    slow = any(f.code == "speed" and f.level == "warning" for f in found)
    own = (draft.strategy or read.kind) == "own" and not draft.several
    summary = _summary(plan, read, slow=slow or draft.several, led=own)
    if warnings:
        return Headline(f"Ready: {who}, {units.number_of(warnings, 'warning')}", "warning-heading", summary)
    return Headline(f"Ready: {who} ✓", "good-heading", summary)


def _summary(made: PlanMade, read: ScriptRead, *, slow: bool, led: bool) -> str:
    """``slow``: the speed is said elsewhere, or is not theirs. ``led``: its chief matters."""
    size = f"{units.number_of(len(read.files), 'file')}, {units.size(read.total_bytes)}"
    plan = made.plan
    if len(plan.members) < 2:
        return size
    chief = plan.chief.device
    names = [
        plain(member.name, 40) + (" (chief)" if member.device == chief and led else "")
        for member in plan.members
    ]
    words = f"{listed(names)} · {size}"
    return f"{words} · {made.expectation}" if made.expectation and not slow else words


def needs_the_user(finding: Finding) -> bool:
    """Whether a line stays visible while the rest is folded."""
    return finding.level in ("warning", "error") or finding.code == ACCEPTED


def _script(read: ScriptRead, draft: RunDraft, state: State, made: PlanMade | Problem | None) -> list[Check]:
    name = plain(read.script, 60)
    kind = draft.strategy or read.kind
    together = len(taking_part(draft, state)) > 1
    shared = together and not draft.several  # a trial may train elsewhere, but shares nothing
    if kind == "own":
        brought = plain(", ".join(read.strategies), 80) or "its own strategy"
        how = (
            "each laptop is one of its replicas, with an equal part of each batch"
            if read.mirrored_loop
            else "Tandem connects it with the other laptops"
        )
        head = _line("ok", "script", f"{name} brings {brought}{f'; {how}' if shared else ''}.")
    elif kind == "managed":
        within = f" in {plain(', '.join(read.strategies), 80)}" if read.strategies else ""
        how = "; the result matches a single machine" if shared else ""
        call = f"{BATCHES} in a loop" if any(each.code == UNKEPT for each in read.mistakes) else "model.fit"
        head = _line("ok", "script", f"{name} uses {call}{within}{how}.")
    else:
        head = _line("ok", "script", f"{name} is a script; it runs as it is.")
    data = made.plan.data if isinstance(made, PlanMade) else ()
    travels = [path for each in data for path in each.spellings]
    matters = {ONLY_HERE: together} | dict.fromkeys((*SHARES_NOTHING, UNKEPT), shared)
    shown = [
        each
        for each in read.mistakes
        if matters.get(each.code, True)
        and not (each.code == ONLY_HERE and is_within(each.detail.partition("=")[2], travels))
    ]
    return [head, *(_mistake(each, draft, state) for each in shown)]


def _mistake(each: Problem, draft: RunDraft, state: State) -> Check:
    line = _line("warning", each.code, each.what, each.fix)
    alone = tuple(offers.alone(draft, state)) if each.code in SHARES_NOTHING else ()
    return replace(line, mend=each.code == ONLY_HERE and bool(each.detail), offers=alone)


def with_data(draft: RunDraft, read: ScriptRead) -> str:
    """The draft's data folders with those that the script names. Raises ``TandemError``."""
    found = data_folders.read_line(draft.data)
    for each in read.mistakes:
        if each.code == ONLY_HERE and each.detail:
            ((name, path),) = data_folders.read([each.detail]).items()
            if path not in found.values():
                free = (
                    other for other in (name, *(f"{name}-{n}" for n in range(2, 99))) if other not in found
                )
                found[next(free)] = path
    return data_folders.written(found)


def _arguments(read: ScriptRead, draft: RunDraft) -> list[Check]:
    """Not an error: a script may parse its arguments differently than its text suggests."""
    told = _refused(read, draft)
    if not told:
        return []
    several = replace_draft(draft, several=True)
    tries = () if _refused(read, several) else (Offer("Try several values", several),)
    fix = f"{plain(read.script, 60)} would end at once: correct its arguments."
    return [_line("warning", "argument-refused", " ".join(told), fix, *tries)]


def _refused(read: ScriptRead, draft: RunDraft) -> tuple[str, ...]:
    sets = sets_of(draft)
    found = (
        () if isinstance(sets, Problem) else (words for each in sets for words in refused(each, read.options))
    )
    return tuple(dict.fromkeys(found))


def _devices(draft: RunDraft, state: State) -> list[Check]:
    paired = candidates(state)
    here = taking_part(draft, state)
    found = []
    ready_ones = [plain(device.shown_name, 40) for device in paired if device.device in here]
    if ready_ones:
        are = "is" if len(ready_ones) == 1 else "are"
        found.append(
            _line("ok", "paired", f"{listed(ready_ones)} {are} paired and connected, with the same versions.")
        )
    found += [
        _absent(device, state) for device in paired if why_not(device) and device.device not in draft.left_out
    ]
    found += _missing(draft, state)
    if not paired:
        found.append(
            _line(
                "note",
                "alone",
                "This laptop trains alone.",
                "Pair another one on the Devices screen to train together.",
                _SHOW_DEVICES,
            )
        )
    return found


def would_be_alone(draft: RunDraft, state: State) -> Problem | None:
    """The question to ask before the start if nobody else can take part though somebody was meant to."""
    absent = [each for each in candidates(state) if why_not(each) and each.device not in draft.left_out]
    if len(taking_part(draft, state)) > 1 or not absent:
        return None
    who = listed([f"{plain(each.shown_name, 40)} ({why_not(each)})" for each in absent])
    return Problem(
        code="would-be-alone",
        what=f"This run would train on this laptop alone, without {who}.",
        fix="Wait until another laptop can take part, or press Train alone.",
    )


def under_way(state: State, unseen: RunId | None = None) -> Problem | None:
    """The run that goes on while another one is being composed here, or that this laptop is to join; or the
    result of the run ``unseen``."""
    if not state.busy and (joining := joining_words(state)):
        return Problem(code="joining", what=joining, fix="")
    run = state.run
    if run is None or not (state.busy or run.plan.run == unseen):
        return None
    starter = run.plan.starter
    mine = state.me is not None and starter == state.me.device
    name = name_of(state, starter)
    if not state.busy:
        script, outcome = plain(run.plan.script, 60), outcome_words(run.phase, run.summary)
        what = f"Your run of {script}: {outcome}." if mine else f"{script}, started by {name}: {outcome}."
        return Problem(code="run-over", what=what, fix="")
    what = "A run is under way." if mine else f"{name} started a run."
    return Problem(code="run-under-way", what=what, fix="")


def _absent(device: Device, state: State) -> Check:
    name = plain(device.shown_name, 40)
    if device.linked and device.problem is not None:
        match = [Offer("Have the same here…", device=device.device)] if may_match(state.me, device) else []
        what = f"{name} cannot take part: {device.problem.what}"
        return _line("warning", "no-run", what, device.problem.fix, *match)
    if device.busy:
        return _line(
            "warning", "busy-there", f"{name} is busy with another run.", "Wait for it, or stop it there."
        )
    fix = device.problem.fix if device.problem is not None else ""
    return _line(
        "warning",
        "not-connected",
        f"{name} is not connected, so this run goes without it.",
        fix or "Check that it is on, awake and on this network, with Tandem open.",
    )


def _missing(draft: RunDraft, state: State) -> list[Check]:
    """Laptops of the repeated run that are no longer paired with this one."""
    me = state.me.device if state.me is not None else None
    known = {device.device for device in candidates(state)} | {me}
    return [
        _line(
            "warning",
            "not-paired-now",
            f"{plain(name, 40)} took part then but is no longer paired, so this run goes without it.",
            "Pair it again on the Devices screen to include it.",
            _SHOW_DEVICES,
        )
        for device, name in draft.then.items()
        if device not in known
    ]


def _project(read: ScriptRead, together: bool) -> list[Check]:
    count, size = units.number_of(len(read.files), "file"), units.size(read.total_bytes)
    where = plain(read.folder, 80)
    if together:
        words = f"{count}, {size}, are sent from {where} to the others, except what they already have."
    else:
        words = f"{count}, {size}, in {where}."
    found = [_line("ok", "project", words)]
    if read.skipped:
        some = ", ".join(plain(path, 80) for path in read.skipped[:4])
        more = f" and {len(read.skipped) - 4} more" if len(read.skipped) > 4 else ""
        found.append(_line("note", "skipped", f"Left out: {some}{more}."))
    return found


def _accepted(read: ScriptRead, state: State, draft: RunDraft) -> list[Check]:
    known = state.me.settings.accepted if state.me is not None else ()
    if not draft.options.accept_differences and read.code not in known:
        return []
    what = "Differences from one laptop's result are accepted for this script: the run still ends green."
    return [replace(_line("note", ACCEPTED, what), mend=True)]


def _speed(draft: RunDraft, state: State, read: ScriptRead, plan: PlanMade | None) -> Check:
    """The measured speed on these laptops, with advice if that was hardly faster than one: nothing else
    justifies a promise before the run."""
    if plan is not None and plan.expectation:
        level: Literal["ok", "warning"] = "warning" if plan.advice else "ok"
        helps = offers.by_advice(plan.advice, draft, state, read.options) if plan.advice is not None else ()
        return _line(level, "speed", plan.expectation, advice_words(plan.advice, WINDOW), *helps)
    if len(taking_part(draft, state)) > 1 and (draft.strategy or read.kind) == "managed":
        return _line("note", "speed", "The speed-up will be measured in the first seconds of the run.")
    return _line("note", "speed", "The speed is unknown until the first run of this script.")


def _matters(finding: Finding) -> bool:
    hinders = finding.level == "error" and finding.topic not in _NO_HINDRANCE
    return hinders or finding.code in _FROM_DOCTOR


def _line(
    level: Literal["ok", "note", "warning", "error"], code: str, what: str, fix: str = "", *can: Offer
) -> Check:
    return Check(code=code, topic="run", level=level, what=what, fix=fix, offers=can)


def _told(
    level: Literal["warning", "error"], problem: Problem, state: State, draft: RunDraft | None = None
) -> Check:
    """``draft``: it cannot be planned because of ``problem``."""
    can = offers.installing(problem.installs, state)
    if not can and draft is not None and problem.code in _ALONE_HELPS:
        can = tuple(offers.alone(draft, state))
    line = _line(level, problem.code, problem.what, problem.fix, *can)
    return replace(line, command=problem.command, command_on=problem.command_on)


def disk_level(device: Device) -> _Level | None:
    """Judge free space by the doctor's own limits; None if nothing is reported."""
    free = device.reading.disk_free_bytes if device.reading is not None else None
    if free is None:
        return None
    if free < TOO_LITTLE_BYTES:
        return "error"
    return "warning" if free < LITTLE_BYTES else "ok"


def _disk_lines(devices: Iterable[Device], project_bytes: int) -> list[Check]:
    """One for each laptop that reports. ``project_bytes``: the size that may have to be sent there."""
    return [_disk_line(device, found, project_bytes) for device in devices if (found := disk_level(device))]


def _disk_line(device: Device, found: _Level, project_bytes: int) -> Check:
    assert device.reading is not None
    free = max(0, device.reading.disk_free_bytes or 0)
    name = plain(device.shown_name, 40)
    said = f"{units.size(free)} is free on the disk of {name}"
    if found == "error":
        what = f"Only {said}: a run would fail."
    elif free < project_bytes:
        found, what = "warning", f"Only {said}, and the project takes {units.size(project_bytes)}."
    else:
        what = f"{said}." if found == "ok" else f"Only {said}."
    fix = f"Free some space on {name}: delete old runs in its history, or other files there."
    return _line(found, "disk-there", what, "" if found == "ok" else fix)
