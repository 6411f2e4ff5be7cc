"""A run on one self-contained HTML page: no network, no other file.

Names, metrics, texts and paths come from other laptops and from scripts: the template escapes everything
inserted into it, and the page itself forbids all but its own style and script (``plots``).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from typing import TYPE_CHECKING
from urllib.parse import quote

from core.report import laptops, plots
from core.report.curves import (
    NOT_CURVES,
    loss_first,
    member_names,
    panels,
    shown_devices,
)
from core.speed.sentences import (
    achieved,
    audits_words,
    epoch_words,
    expected,
    inexact_words,
    speed_up,
    steps_words,
    times,
)
from core.vocabulary import phases, units
from core.vocabulary.answers import RunDetails, RunEntry
from core.vocabulary.ids import DeviceId, short, started_s
from core.vocabulary.phases import Exit
from core.vocabulary.plan import Member
from core.vocabulary.progress import Progress
from core.vocabulary.text import capitalised, plain
from core.vocabulary.versions import ROOT

if TYPE_CHECKING:
    from jinja2 import Template
    from markupsafe import Markup

MOST_EPOCHS = 200
"""Rows of the epochs' table; the CSV has all."""
MOST_FILES = 200
MOST_SAID = 200
TEMPLATE = ROOT / "resources" / "report" / "page.html"

_MEETING = {
    "tensorflow": "TensorFlow's collectives",
    "tls": "TLS, with keys of this run",
    "sealed": "TensorFlow, sealed, through relays over TLS with keys of this run",
}

Exits = Sequence[tuple[DeviceId, str, Exit]]
"""Device, task and end of each trainer."""


@dataclass(frozen=True, slots=True)
class _Row:
    """A member on the page. ``tasks``: empty where laptops are told apart by name alone. Speeds are in words,
    empty where nothing was measured."""

    name: str
    device: str
    tasks: str
    share: str
    samples: str
    step: str
    wait: str
    weights: str
    ends: Sequence[tuple[str, Exit]]
    ends_by_task: bool


@dataclass(frozen=True, slots=True)
class _Epochs:
    """The table of epochs. ``rows``: an epoch's name, then a number per metric and its time. ``cut``: how
    many of all epochs are shown, if not all."""

    metrics: Sequence[str]
    rows: Sequence[tuple[str, Sequence[str]]]
    cut: str


def page(details: RunDetails, exits: Exits, here: Collection[str], said: Sequence[str] = ()) -> str:
    """The page. ``here``: outputs to link. ``said``: Tandem's own messages about the training. The first call
    loads Jinja2: don't call it on the core loop."""
    entry, shown = details.entry, panels(details)
    files = entry.summary.outputs
    return render(
        name=entry.name or entry.script,
        note=entry.note,
        outcome=outcome(entry.phase, entry.summary.flaw),
        flawed=isinstance(entry.phase, phases.Finished) and bool(entry.summary.flaw),
        lead=_lead(entry),
        figures=_figures(entry),
        problem=entry.phase.problem if isinstance(entry.phase, phases.Failed) else None,
        curves=plots.data(shown) if shown else "",
        members=_members(details, exits),
        machines=laptops.machines(details),
        turns=laptops.timeline(details),
        said=said[:MOST_SAID],
        tf_configs=laptops.tf_configs(details),
        best=_best(entry),
        speed=_together(details),
        metrics=_metrics(entry),
        times=_times(entry),
        epochs=_epochs(details),
        files=files[:MOST_FILES],
        more_files=f"and {len(files) - MOST_FILES:,} more" if len(files) > MOST_FILES else "",
        here=here,
        about=_about(details),
    )


def render(**parts: object) -> str:
    """The page with these parts of the template, and without the others."""
    template, names = _template()
    left = dict.fromkeys(names - parts.keys(), ())
    return template.render(**{**left, "script": plots.script(), **parts})


@cache
def _template() -> tuple[Template, set[str]]:
    """With the names of its parts."""
    # Loaded with the first report, in a thread: importing Jinja2 takes 25 ms.
    from jinja2 import Environment, StrictUndefined, meta
    from markupsafe import Markup

    def upto(value: object, limit: int = 200) -> Markup:
        return value if isinstance(value, Markup) else Markup(escape(plain(str(value), limit)))

    def link(path: str) -> Markup:
        return Markup(escape(quote(path)))

    environment = Environment(
        autoescape=True, finalize=upto, undefined=StrictUndefined, keep_trailing_newline=True
    )
    environment.filters.update(upto=upto, link=link, whole=Markup)
    text = TEMPLATE.read_text(encoding="utf-8")
    return environment.from_string(text), meta.find_undeclared_variables(environment.parse(text))


def outcome(phase: phases.Phase, flaw: str = "") -> str:
    match phase:
        case phases.Finished():
            return f"finished, but {flaw}" if flaw else "finished"
        case phases.Stopped(goes_on=True):
            return "continued in the next run"
        case phases.Stopped(by=by):
            return f"stopped on {by}" if by else "stopped"
        case phases.Failed():
            return "failed"
    return "not ended"


def _lead(entry: RunEntry) -> list[str]:
    count, diverged = len(entry.devices), entry.summary.diverged
    return [
        outcome(entry.phase, entry.summary.flaw),
        *([diverged.words] if diverged is not None and not isinstance(entry.phase, phases.Finished) else []),
        "one laptop" if count == 1 else f"{count} laptops",
        units.moment(started_s(entry.run, entry.started_s)),
        *([units.clock(entry.duration_s)] if entry.duration_s is not None else []),
    ]


def _figures(entry: RunEntry) -> list[tuple[str, str, str]]:
    """The few numbers that people look for first, as (name, number, note), without unknown ones."""
    summary, logs = entry.summary, entry.summary.last_logs
    metrics = [
        name
        for name in sorted(logs, key=loss_first)
        if not name.startswith("val_") and name not in NOT_CURVES
    ]
    over = ", last epoch" if summary.epochs else ""  # curves end with the mean of the newest steps
    lost = summary.diverged
    gain, rate = speed_up(summary), summary.speed_samples_s
    speed, note = ("", "") if rate is None else (f"{rate:,.0f}", "samples/s")
    if gain is not None:
        slower = gain < 1
        speed = f"{times(1 / gain)}× slower" if slower else f"{times(gain)}×"
        note = f"{'than' if slower else 'as fast as'} the fastest laptop alone"
    found = [
        *([("loss", lost.value, f"since epoch {lost.epoch + 1:,}")] if lost is not None else []),
        *((f"{name}{over}", f"{logs[name]:.4g}", _validation(entry, name)) for name in metrics[:2]),
        ("time", _or_empty(units.clock, summary.total_s), steps_words(summary)),
        ("speed", speed, note),
    ]
    return [each for each in found if each[1]]


def _validation(entry: RunEntry, name: str) -> str:
    """``validation 0.55, best 0.4 in epoch 2``."""
    last, known = entry.summary.last_logs.get(f"val_{name}"), f"val_{name}" in entry.best
    best = entry.best.get(f"val_{name}" if known else name)
    words = [] if last is None else [f"validation {last:.4g}"]
    if best is not None:
        words.append(f"best {best.value:.4g} in epoch {best.epoch + 1:,}")
    return ", ".join(words)


def _members(details: RunDetails, exits: Exits) -> list[_Row]:
    plan, weights = details.plan, details.entry.summary.weights_sha256
    if plan is None:
        return []
    rows = []
    for member in plan.members:
        device = member.device
        tasks = plan.tasks_of(device)
        samples, step, wait = _speed(details.steps.get(device, ()))
        rows.append(
            _Row(
                name=member.name,
                device=short(device),
                tasks=" ".join(task.name for task in tasks) if plan.names_roles else "",
                share=_share(details, member),
                samples=samples,
                step=step,
                wait=wait,
                weights=weights.get(device, "")[:16],
                ends=[(task, exit) for by, task, exit in exits if by == device],
                ends_by_task=len(tasks) > 1,
            )
        )
    return rows


def _share(details: RunDetails, member: Member) -> str:
    """Rows of the batch at the end; if unreported, the plan's; ``""`` for a single laptop."""
    members = details.plan.members if details.plan is not None else ()
    if len(members) < 2:
        return ""
    settled = details.entry.summary.settled
    if settled is not None and settled.shares:
        return f"{settled.shares.get(member.device, 0):,} of {sum(settled.shares.values()):,} rows"
    return f"{member.share} of {sum(each.share for each in members)}"


def _together(details: RunDetails) -> Sequence[str]:
    """The expected and the measured speed of several laptops."""
    if details.plan is None:
        return ()
    summary = details.entry.summary
    inexact = inexact_words(summary)
    told = (capitalised(inexact), *(f"Not as on one machine: {words}" for words in summary.told))
    speed = achieved(summary, details.plan) or expected(summary.expectation, details.plan)
    audits = audits_words(summary.audits) if summary.audits is not None else ""
    return tuple(filter(None, (*told, audits, speed.what)))


def _speed(steps: Sequence[Progress]) -> tuple[str, str, str]:
    """Means over all reports: samples/s of all members, time of a step, and the wait in it."""
    samples = [step.samples_s for step in steps if step.samples_s is not None]
    times = [step.step_s for step in steps if step.step_s]
    waits = [step.wait_s for step in steps if step.wait_s is not None]
    return (
        f"{sum(samples) / len(samples):,.0f}" if samples else "",
        f"{1000 * sum(times) / len(times):,.1f} ms" if times else "",
        f"{1000 * sum(waits) / len(waits):,.1f} ms" if waits else "",
    )


def _metrics(entry: RunEntry) -> list[tuple[str, str]]:
    logs = entry.summary.last_logs
    return [(name, f"{logs[name]:.6g}") for name in sorted(logs, key=loss_first)]


def _best(entry: RunEntry) -> list[tuple[str, str]]:
    best = entry.best
    return [
        (name, f"{best[name].value:.6g} in epoch {best[name].epoch + 1:,}")
        for name in sorted(best, key=loss_first)
    ]


def _or_empty(words: Callable[[float], str], value: float | None) -> str:
    return "" if value is None else words(value)


def _times(entry: RunEntry) -> list[tuple[str, str]]:
    summary, since = entry.summary, "" if entry.resumed is None else " since it was resumed"
    found = [
        ("first step after", _or_empty(units.duration, summary.first_step_s)),
        (f"training{since}", _or_empty(units.clock, summary.train_s)),
        ("total", _or_empty(units.clock, summary.total_s)),
        ("epochs", str(summary.epochs or "")),
        ("steps", steps_words(summary)),
        ("steps/s", f"{summary.steps_s:,.2f}" if summary.steps_s is not None else ""),
        ("samples/s, on average", f"{summary.samples_s:,.0f}" if summary.samples_s is not None else ""),
    ]
    return [pair for pair in found if pair[1]]


def _epochs(details: RunDetails) -> _Epochs:
    devices = shown_devices(details)
    names = member_names(details)
    all_rows = [(device, epoch) for device in devices for epoch in details.epochs.get(device, ())]
    metrics = sorted({name for _, epoch in all_rows for name in epoch.values}, key=loss_first)
    several_fits = len({epoch.fit for _, epoch in all_rows}) > 1
    rows = []
    for device, epoch in all_rows[-MOST_EPOCHS:]:
        whose = f"{names.get(device, short(device))}: " if len(devices) > 1 else ""
        fit = f"fit {epoch.fit + 1}, " if several_fits else ""
        values: dict[str, str] = {**epoch.not_finite}
        values |= {name: f"{value:.6g}" for name, value in epoch.logs.items()}
        numbers = [values.get(name, "") for name in metrics]
        rows.append((f"{whose}{fit}{epoch_words(epoch)}", [*numbers, f"{epoch.seconds:,.1f} s"]))
    cut = f"The last {len(rows):,} of {len(all_rows):,}" if len(all_rows) > len(rows) else ""
    return _Epochs(metrics, rows, cut)


def _about(details: RunDetails) -> list[tuple[str, str]]:
    entry, plan = details.entry, details.plan
    found = [
        ("run", entry.run),
        ("script", entry.source or entry.script),
        ("arguments", " ".join(entry.arguments)),
        ("strategy", entry.summary.strategy),
    ]
    if plan is not None:
        found += [
            ("started on", member_names(details).get(plan.starter, short(plan.starter))),
            ("seed", str(plan.seed)),
            ("numbers on the wire", plan.wire),
            ("meetings", plan.sync if not plan.solo else ""),
            ("members meet by", _MEETING.get(plan.exchange, plan.exchange) if not plan.solo else ""),
            ("project", plan.project),
        ]
    found += [
        (f"weights on {name}", digest)
        for device, name in member_names(details).items()
        if (digest := entry.summary.weights_sha256.get(device))
    ]
    return [pair for pair in found if pair[1]]
