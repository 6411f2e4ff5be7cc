"""What a run says of itself, in words: phases, members, numbers, its end. Pure; shared by every display."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from core.run.outputs import is_model
from core.speed import sentences
from core.speed.stragglers import straggler
from core.vocabulary import phases
from core.vocabulary.events import CheckpointCame
from core.vocabulary.ids import DeviceId, RunId, short
from core.vocabulary.phases import Phase
from core.vocabulary.plan import Moment, Plan
from core.vocabulary.progress import Progress, Summary
from core.vocabulary.state import MemberState, Run
from core.vocabulary.text import plain

PHASES: dict[type, str] = {
    phases.Planning: "planning",
    phases.Preparing: "preparing",
    phases.Starting: "starting",
    phases.Training: "training",
    phases.Recovering: "recovering",
    phases.Stopping: "stopping after this step",
    phases.Finished: "finished",
    phases.Stopped: "stopped",
    phases.Failed: "failed",
}
_MEMBERS = {
    "waiting": "waiting",
    "consent": "waiting for Allow",
    "receiving": "receiving the files",
    "prepared": "ready",
    "starting": "starting TensorFlow",
    "meeting": "waiting for the other trainers",
    "training": "training",
    "stopping": "stopping",
    "ended": "ended",
}
SHOWN_LOGS = 4
SHOWN_PATHS = 6
ALIKE = 1.15
"""Times that differ by less are said as one."""
FAR_S = 1e7
"""Four months: whoever says so says nothing, and a peer may say that it does a step in an eternity."""


def phase_words(phase: Phase) -> str:
    match phase:
        case phases.Stopped(by=by) if by:
            return f"stopped on {plain(by, 40)}"
        case phases.Recovering(lost=lost) if lost:
            return f"recovering: {plain(lost, 40)} was lost"
    return PHASES[type(phase)]


def outcome_words(phase: Phase, summary: Summary | None) -> str:
    """How a run ended; of one that finished also whether that is the result of one machine."""
    if isinstance(phase, phases.Finished) and summary is not None and summary.differs:
        return "finished, but not with the result of one machine"
    return phase_words(phase)


def member_words(member: MemberState) -> str:
    """``receiving the files, 40 %`` and so on."""
    words = _MEMBERS[member.phase]
    if member.phase == "receiving" and member.total:
        words += f", {100 * member.done // member.total} %"
    return f"{words}: {plain(member.words, 120)}" if member.words else words


def tasks_words(plan: Plan, device: DeviceId) -> str:
    """``chief:0`` or ``worker:0 ps:0``; nothing for one process alone."""
    return "" if plan.solo else " ".join(task.name for task in plan.tasks_of(device))


def logs_words(logs: dict[str, float]) -> str:
    """``loss 0.2345, accuracy 0.9667``: the loss first, validation after training."""
    order = sorted(logs, key=lambda name: (name.startswith("val_"), name.removeprefix("val_") != "loss"))
    return ", ".join(f"{plain(name, 30)} {number(logs[name])}" for name in order[:SHOWN_LOGS])


def number(value: float) -> str:
    """Four significant digits, as people read them."""
    return f"{value:.4f}" if 1e-3 <= abs(value) < 1e3 or value == 0 else f"{value:.3e}"


def step_words(progress: Progress) -> str:
    """``epoch 3/8, step 14/23``."""
    of = "" if progress.steps_in_epoch is None else f"/{progress.steps_in_epoch}"
    return f"epoch {progress.epoch + 1}/{progress.epochs}, step {progress.batch + 1}{of}"


def waiting_words(members: Mapping[DeviceId, MemberState], names: Mapping[DeviceId, str]) -> str:
    """``Anna's waits for Ben's: 12.0 of 40.0 ms a step``; nothing where nobody clearly waits."""
    if not all(member.phase == "training" for member in members.values()):
        return ""
    found = straggler({device: member.progress for device, member in members.items()})
    if found is None:
        return ""
    waiting = " and ".join(names.get(device, short(device)) for device in found.waits_s)
    verb = "waits" if len(found.waits_s) == 1 else "wait"
    longest_s = max(found.waits_s.values())
    return (
        f"{waiting} {verb} for {names.get(found.device, short(found.device))}: "
        f"{1000 * longest_s:.1f} of {1000 * found.step_s:.1f} ms a step"
    )


class Share(NamedTuple):
    """A member's part of the batch. ``measured``: the rows of its last step with a whole batch; else the unit
    is the plan's."""

    rows: int
    whole: int
    measured: bool

    @property
    def part(self) -> float:
        return self.rows / self.whole

    @property
    def words(self) -> str:
        """``48 of 64 rows``, ``75 % of each batch``."""
        return (
            f"{self.rows:,} of {self.whole:,} rows"
            if self.measured
            else f"{100 * self.part:.0f} % of each batch"
        )


def share_of(run: Run, device: DeviceId) -> Share | None:
    """None where nothing is shared, or shares follow speeds that nobody has measured yet."""
    plan, member = run.plan, run.members[device]
    progress = member.whole or member.progress
    if plan.strategy != "managed" or len(plan.members) < 2:
        return None
    if progress is not None and progress.share is not None:
        whole = progress.rows
        if 0 <= progress.share <= whole > 0:
            return Share(progress.share, whole, measured=True)
    total = sum(each.share for each in plan.members)
    return None if plan.balance or total <= 0 else Share(plan.member(device).share, total, measured=False)


def share_words(run: Run, device: DeviceId) -> str:
    share = share_of(run, device)
    return share.words if share is not None else ""


def fraction(progress: Progress) -> float | None:
    """How much of this ``fit`` is done, 0 to 1; None where nobody knows how long it is."""
    if not progress.steps_in_epoch or progress.epochs <= 0:
        return None
    done = progress.epoch + min(1.0, (progress.batch + 1) / progress.steps_in_epoch)
    return max(0.0, min(1.0, done / progress.epochs))


def steps_left(progress: Progress) -> int | None:
    """Of this ``fit``; None where nobody knows how long it is."""
    if not progress.steps_in_epoch:
        return None
    done = progress.epoch * progress.steps_in_epoch + progress.batch + 1
    return max(0, progress.epochs * progress.steps_in_epoch - done)


def range_words(least_s: float, most_s: float) -> str:
    """``4:30`` where both are about the same, else ``4:10–5:30``, ``20–29 min``, ``2.5–3.1 h``."""
    if most_s < ALIKE * least_s or most_s - least_s < 2.0:
        return duration((least_s + most_s) / 2)
    if most_s < 600:
        return f"{duration(least_s)}–{duration(most_s)}"
    if most_s < 7200:
        return f"{least_s / 60:.0f}–{most_s / 60:.0f} min"
    return f"{least_s / 3600:.1f}–{most_s / 3600:.1f} h"


def duration(seconds: float) -> str:
    """``0:07``, ``12:30``, ``1:02:03``."""
    whole = round(seconds)
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def goes_on_words(moment: Moment, lender: str = "") -> str:
    """``Resumes at epoch 4, step 120.``; which fit, where it is not the script's first.

    ``lender``: what to call the laptop that has the checkpoint, where it is another one.
    """
    fit = f"fit {moment.fit + 1}, " if moment.fit else ""
    whose = f", with the checkpoint on {lender}" if lender else ""
    return f"Resumes at {fit}epoch {moment.epoch + 1}, step {moment.batch + 1}{whose}."


def started_s(run: RunId, recorded_s: float) -> float:
    """When a run was started, as its id says it on every laptop: each one's own record (``recorded_s``) is a
    little later, and by another clock. Unix time."""
    try:
        began = datetime.strptime("-".join(run.split("-")[:2]), "%Y%m%d-%H%M%S")
    except ValueError:
        return recorded_s
    return began.replace(tzinfo=UTC).timestamp()


def fetch_words(fetch: CheckpointCame, lender: str) -> str:
    """``Fetching the checkpoint from Ben: 12.0 of 70.5 MB.``"""
    return f"Fetching the checkpoint from {lender}: {fetch.done / 1e6:,.1f} of {fetch.total / 1e6:,.1f} MB."


def rate_words(progress: Progress) -> str:
    """``640 samples/s``; ``""`` where nobody says."""
    if progress.samples_s is not None:
        return f"{progress.samples_s:,.0f} samples/s"
    return f"{progress.steps_s:,.1f} steps/s" if progress.steps_s is not None else ""


def summary_lines(
    summary: Summary, names: Mapping[DeviceId, str], folder: str, plan: Plan | None = None
) -> list[str]:
    """What came out, for a person. ``plan``: who the measured numbers are about."""
    lines = []
    if summary.last_logs:
        lines.append(logs_words(summary.last_logs))
    speed = []
    if done := sentences.steps_words(summary):
        speed.append(done)
    if summary.steps_s is not None:
        speed.append(f"{summary.steps_s:,.1f} steps/s")
    if summary.first_step_s is not None:
        speed.append(f"first step after {summary.first_step_s:.1f} s")
    if summary.total_s is not None:
        speed.append(f"{duration(summary.total_s)} total")
    if speed:
        lines.append(", ".join(speed))
    if plan is not None:
        lines += sentences.came_out(summary, plan, names).lines
    if summary.told:
        accepted = " (accepted)" if summary.accepted else ""
        lines += [f"Not as on one machine{accepted}: {plain(words, 600)}" for words in summary.told]
    digests = {DeviceId(device): digest for device, digest in summary.weights_sha256.items() if digest}
    if len(digests) > 1:
        if len(set(digests.values())) == 1:
            lines.append(f"The same weights on all members: {short(next(iter(digests.values())))}")
        else:
            held = ", ".join(
                f"{names.get(device, short(device))} {short(digests[device])}" for device in digests
            )
            lines.append(f"The members' weights differ: {held}")
    if summary.outputs and folder:
        models, written = told_apart(summary.outputs)
        if models:
            lines.append(models_words([f"{folder}/outputs/{model}" for model in models]))
        if written:
            count = f"{len(written)} {'file' if len(written) == 1 else 'files'}"
            lines.append(f"{count} written by the script: {folder}/outputs")
    return lines


def in_the_window(words: str) -> str:
    """What a terminal's option is called in the window."""
    words = words.replace("(--wire bf16)", "(Options: gradients travel as)")
    words = words.replace(
        "The shares are fixed: without --share each laptop",
        "The shares are set by hand: where they are not, each laptop",
    )
    words = re.sub(r"\(--solo on [^)]*\)", "(start it there, with the others not in this run)", words)
    return words.replace("(--solo)", "(under Roles, set the others to “not in this run”)")


def models_words(models: Sequence[str]) -> str:
    """``The trained model: trained/model.keras``."""
    return f"The trained {'model' if len(models) == 1 else 'models'}: {listed(models)}"


def listed(paths: Sequence[str]) -> str:
    """The first few."""
    more = f" and {len(paths) - SHOWN_PATHS} more" if len(paths) > SHOWN_PATHS else ""
    return ", ".join(paths[:SHOWN_PATHS]) + more


def told_apart(outputs: Sequence[str]) -> tuple[list[str], list[str]]:
    """The models that Tandem kept, and what the script wrote itself."""
    models = [path for path in outputs if is_model(path)]
    return models, [path for path in outputs if not is_model(path)]
