"""A run in words: phases, members, numbers, outcome. Pure; shared by every display."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf, isfinite
from typing import NamedTuple

from app.words import device_names
from app.words.advice_words import TERMINAL, Face, speed_lines
from core.run import problems
from core.run.outputs import is_model
from core.speed import sentences
from core.vocabulary import phases, units
from core.vocabulary.errors import LEFT_RUN
from core.vocabulary.events import CheckpointCame, FilesRead, JoinProgressed
from core.vocabulary.ids import DeviceId, short
from core.vocabulary.laptops import gone
from core.vocabulary.phases import Phase
from core.vocabulary.plan import Moment, Plan
from core.vocabulary.progress import EpochEnd, Progress, Summary, not_finite
from core.vocabulary.state import MemberState, Run, State
from core.vocabulary.text import capitalised, plain
from core.vocabulary.text import listed as listed_names

PHASES: dict[type, str] = {
    phases.Planning: "planning",
    phases.Preparing: "preparing",
    phases.Starting: "starting",
    phases.Training: "training",
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
    "meeting": "waiting for the others",
    "training": "training",
    "stopping": "stopping",
    "ended": "ended",
}
DIVERGED_FIX = "Stop it, then use a smaller learning rate or clip the gradients (clipnorm)."
SHOWN_LOGS = 4
SHOWN_PATHS = 6
ALIKE = 1.15
"""Times within this factor are shown as one."""
FAR_S = 1e7
"""Four months: longer times are useless, and a peer may report absurd ones."""


def phase_words(phase: Phase) -> str:
    match phase:
        case phases.Stopping(back=back) | phases.Stopped(goes_on=True, back=back) if back:
            return f"going on with {plain(listed_names(back), 80)}"
        case phases.Stopped(goes_on=True):
            return "going on"
        case phases.Stopped(by=by) if by:
            return f"stopped on {plain(by, 40)}"
    return PHASES[type(phase)]


def run_phase_words(run: Run) -> str:
    """Like ``phase_words``; for a resumed run, until its first step, also with whom and where."""
    progress = run.members[run.chief.device].progress
    if isinstance(run.phase, phases.Training) and progress is not None:
        met, bits = progress.met_every, progress.sent_bits
        meeting = f"meeting every {units.number_of(met, 'step')}" if met else ""
        sending = f"gradients sent in {bits} bits" if bits else ""
        chosen = ", ".join(filter(None, (meeting, sending)))
        return f"{phase_words(run.phase)}, {chosen} (not exact)" if chosen else phase_words(run.phase)
    resume = run.plan.resume
    early = isinstance(run.phase, phases.Planning | phases.Preparing | phases.Starting)
    if not early or resume is None or not resume.back:
        return phase_words(run.phase)
    who, step = plain(listed_names(resume.back), 80), resume.moment.step
    return f"going on with {who} from step {step:,}"


def outcome_words(phase: Phase, summary: Summary | None) -> str:
    """A run's outcome; for a finished one, also whether its loss is finite and its result one machine's."""
    if summary is None:
        return phase_words(phase)
    if isinstance(phase, phases.Finished) and summary.flaw:
        words = (phase_words(phase), sentences.chosen_words(summary), f"but {summary.flaw}")
        return ", ".join(filter(None, words))
    return ", ".join(filter(None, (phase_words(phase), sentences.inexact_words(summary))))


def member_words(member: MemberState) -> str:
    """``receiving the files, 40 % of 2 GB, 85 MB/s, 14 s left`` and so on."""
    if member.left is not None:
        what = plain(member.left.what, 120)
        return what if member.left.code == LEFT_RUN else f"{gone(member.left)}: {what}"
    words = _MEMBERS[member.phase]
    if member.phase == "receiving" and member.total:
        return f"{plain(member.words, 120) or words}, {come_words(member)}"
    return f"{words}: {plain(member.words, 120)}" if member.words else words


def come_words(coming: MemberState | JoinProgressed) -> str:
    """``40 % of 2 GB, 85 MB/s, 14 s left``, for files that a laptop receives."""
    words = f"{100 * coming.done // coming.total} % of {units.size(coming.total)}"
    rate_bytes_s = coming.rate_bytes_s
    if not 1_000 <= rate_bytes_s < inf:  # otherwise it has stalled
        return words
    left_s = (coming.total - coming.done) / rate_bytes_s
    return f"{words}, {units.rate(rate_bytes_s)}, {units.duration(max(1.0, left_s))} left"


def left_words(run: Run, names: Mapping[DeviceId, str]) -> list[str]:
    """``Ben was lost: The trainer was killed. Anna goes on alone.`` The end only if nobody is coming back."""
    back = isinstance(run.phase, phases.Stopping | phases.Stopped) and run.phase.back
    others = [] if back else [names[device] for device in run.staying]
    return [
        problems.left(names[device], member.left, others)
        for device, member in run.members.items()
        if member.left is not None
    ]


def tasks_words(plan: Plan, device: DeviceId) -> str:
    """``chief:0`` or ``worker:0 ps:0``; empty if roles don't matter."""
    return "" if not plan.names_roles else " ".join(task.name for task in plan.tasks_of(device))


def logs_words(logs: dict[str, float]) -> str:
    """``loss 0.2345, accuracy 0.9667``: the loss first, validation after training."""
    order = sorted(logs, key=lambda name: (name.startswith("val_"), name.removeprefix("val_") != "loss"))
    return ", ".join(f"{plain(name, 30)} {number(logs[name])}" for name in order[:SHOWN_LOGS])


def epoch_line(epoch: EpochEnd) -> str:
    """``epoch 3/8: loss 0.2345 (1.2 s)``; without a value only its time."""
    said = (f"epoch {sentences.epoch_words(epoch)}", logs_words(epoch.values))
    return f"{': '.join(filter(None, said))} ({units.duration(epoch.seconds)})"


def number(value: float) -> str:
    """Four significant digits, as people read them."""
    if not isfinite(value):
        return not_finite(value)
    return f"{value:.4f}" if 1e-3 <= abs(value) < 1e3 or value == 0 else f"{value:.3e}"


def step_words(progress: Progress) -> str:
    """``epoch 3/8, step 14/23``; ``step 14`` outside of any epoch."""
    if progress.epochs <= 0:
        return f"step {progress.step + 1}"
    of = "" if progress.steps_in_epoch is None else f"/{progress.steps_in_epoch}"
    return f"epoch {progress.epoch + 1}/{progress.epochs}, step {progress.batch + 1}{of}"


class Share(NamedTuple):
    """A member's part of the batch. ``measured``: in rows of its last step with a whole batch; else in the
    plan's unit."""

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
    """None if nothing is shared, or shares follow speeds that nobody has measured yet."""
    plan, member = run.plan, run.members[device]
    progress = member.whole or member.progress
    if plan.strategy != "managed" or len(plan.members) < 2 or member.left is not None:
        return None
    if progress is not None and progress.share is not None:
        rows, whole = progress.share, progress.rows
        told = [each.whole or each.progress for each in run.staying.values()]
        known = [each for each in told if each is not None and each.share is not None]
        if len(known) == len(told) and sum(each.share or 0 for each in known) != whole:
            # The shares have just changed, and only the newest report tells.
            newest = max(known, key=lambda each: (each.fit, each.step))
            if newest is not progress:
                is_of_two = len(known) == 2 and (newest.fit, newest.rows) == (progress.fit, whole)
                rows = whole - (newest.share or 0) if is_of_two else -1
        if 0 <= rows <= whole > 0:
            return Share(rows, whole, measured=True)
    total = sum(each.share for each in plan.members)
    return None if plan.balance or total <= 0 else Share(plan.member(device).share, total, measured=False)


def share_words(run: Run, device: DeviceId) -> str:
    share = share_of(run, device)
    return share.words if share is not None else ""


def fraction(progress: Progress) -> float | None:
    """Progress of this ``fit``, 0 to 1; None if its length is unknown."""
    if not progress.steps_in_epoch or progress.epochs <= 0:
        return None
    done = progress.epoch + min(1.0, (progress.batch + 1) / progress.steps_in_epoch)
    return max(0.0, min(1.0, done / progress.epochs))


def steps_left(progress: Progress) -> int | None:
    """Steps left in this ``fit``; None if its length is unknown."""
    if not progress.steps_in_epoch:
        return None
    done = progress.epoch * progress.steps_in_epoch + progress.batch + 1
    return max(0, progress.epochs * progress.steps_in_epoch - done)


def range_words(least_s: float, most_s: float) -> str:
    """``4:30`` if both are about the same, else ``4:10–5:30``, ``20–29 min``, ``2.5–3.1 h``."""
    if most_s < ALIKE * least_s or most_s - least_s < 2.0:
        return units.clock((least_s + most_s) / 2)
    if most_s < 600:
        return f"{units.clock(least_s)}–{units.clock(most_s)}"
    if most_s < 7200:
        return f"{least_s / 60:.0f}–{most_s / 60:.0f} min"
    return f"{least_s / 3600:.1f}–{most_s / 3600:.1f} h"


def goes_on_words(moment: Moment, lender: str = "") -> str:
    """``Resumes at epoch 4, step 120.``; names the fit if it is not the script's first.

    ``lender``: the other laptop that has the checkpoint, if any.
    """
    fit = f"fit {moment.fit + 1}, " if moment.fit else ""
    whose = f", with the checkpoint on {lender}" if lender else ""
    epoch, step = moment.next_step
    return f"Resumes at {fit}epoch {epoch + 1}, step {step + 1}{whose}."


def fetch_words(fetch: CheckpointCame, lender: str) -> str:
    """``Fetching the checkpoint from Ben: 12 MB of 70.5 MB.``"""
    return f"Fetching the checkpoint from {lender}: {units.size(fetch.done)} of {units.size(fetch.total)}."


def joining_words(state: State) -> str:
    """``ben will join the run, and is receiving the files: 40 % of 2 GB, 85 MB/s, 14 s left.``, or what it
    does with its own files; ``""``: no laptop receives any now."""
    coming = state.joining
    if coming is None:
        return ""
    here = state.me is not None and coming.device == state.me.device
    who = "This laptop" if here else device_names.name_of(state, coming.device)
    run = "a run under way" if here else "the run"
    doing = plain(coming.words, 120) or "receiving the files"
    return f"{who} will join {run}, and is {doing}: {come_words(coming)}."


def reading_words(reading: FilesRead) -> str:
    """``Reading the files: 512 MB of 2 GB.``"""
    return f"Reading the files: {units.size(reading.done)} of {units.size(reading.total)}."


def rate_words(progress: Progress) -> str:
    """``640 samples/s``; ``""`` if nobody reports it."""
    if progress.samples_s is not None:
        return units.samples(progress.samples_s)
    return units.steps(progress.steps_s) if progress.steps_s is not None else ""


def summary_lines(
    summary: Summary,
    names: Mapping[DeviceId, str],
    folder: str,
    plan: Plan | None = None,
    face: Face = TERMINAL,
) -> list[str]:
    """The results, for a person. ``plan``: the members that the numbers describe."""
    lines = []
    if summary.last_logs:
        lines.append(logs_words(summary.last_logs))
    speed = []
    if done := sentences.steps_words(summary):
        speed.append(done)
    if summary.steps_s is not None:
        speed.append(units.steps(summary.steps_s))
    if summary.first_step_s is not None:
        speed.append(f"first step after {units.duration(summary.first_step_s)}")
    if summary.total_s is not None:
        speed.append(f"{units.clock(summary.total_s)} total")
    if speed:
        lines.append(", ".join(speed))
    if plan is not None:
        lines += speed_lines(sentences.achieved(summary, plan, names), face)
    if summary.audits is not None:
        lines.append(sentences.audits_words(summary.audits))
    lines += [
        f"{names.get(device, short(device))} took part for {units.number_of(step, 'step')}; "
        "the run went on without it"
        for device, step in ((DeviceId(device), step) for device, step in summary.left.items())
    ]
    lines += difference_lines(summary, names)
    digests = [digest for digest in summary.weights_sha256.values() if digest]
    if len(digests) > 1 and len(set(digests)) == 1:
        lines.append(f"All laptops ended with the same weights: {short(digests[0])}")
    if summary.outputs and folder:
        models, written = told_apart(summary.outputs)
        if models:
            lines.append(models_words([f"{folder}/outputs/{model}" for model in models]))
        if written:
            count = units.number_of(len(written), "file")
            lines.append(f"{count} written by the script: {folder}/outputs")
    return lines


def difference_lines(summary: Summary, names: Mapping[DeviceId, str]) -> list[str]:
    """How the result differs from one machine's."""
    accepted = " (accepted)" if summary.accepted else ""
    inexact = sentences.inexact_words(summary)
    lines = [capitalised(inexact)] if inexact else []
    lines += [f"Not as on one machine{accepted}: {plain(words, 600)}" for words in summary.told]
    digests = {DeviceId(device): digest for device, digest in summary.weights_sha256.items() if digest}
    if len(set(digests.values())) > 1:
        held = ", ".join(f"{names.get(device, short(device))} {short(digests[device])}" for device in digests)
        lines.append(f"The laptops' weights differ: {held}")
    return lines


def models_words(models: Sequence[str]) -> str:
    """``The trained model: trained/model.keras``."""
    return f"The trained {'model' if len(models) == 1 else 'models'}: {listed(models)}"


def listed(paths: Sequence[str]) -> str:
    """The first few."""
    more = f" and {len(paths) - SHOWN_PATHS} more" if len(paths) > SHOWN_PATHS else ""
    return ", ".join(paths[:SHOWN_PATHS]) + more


def told_apart(outputs: Sequence[str]) -> tuple[list[str], list[str]]:
    """Splits into the models that Tandem saved, and the files that the script wrote."""
    models = [path for path in outputs if is_model(path)]
    return models, [path for path in outputs if not is_model(path)]
