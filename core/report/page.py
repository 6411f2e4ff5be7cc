"""A run on one page of HTML that needs nothing else: no network, no script, no other file. Pure.

Names, metrics, words and paths come from other laptops and from scripts: everything is escaped, and the page
itself forbids all but its own style and its own picture.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Collection, Iterable, Sequence
from html import escape
from urllib.parse import quote

from core.report.curves import loss_first, member_names, shown_devices
from core.speed.sentences import came_out, expected
from core.vocabulary import phases
from core.vocabulary.answers import RunDetails, RunEntry
from core.vocabulary.errors import Problem
from core.vocabulary.ids import DeviceId, short
from core.vocabulary.phases import Exit
from core.vocabulary.plan import Member
from core.vocabulary.progress import Progress
from core.vocabulary.text import plain

MOST_EPOCHS = 200
"""Rows of the epochs' table; the CSV has all."""
MOST_FILES = 200

_STYLE = """
:root{color-scheme:light dark}
body{font:16px/1.5 system-ui,sans-serif;margin:0;background:#f5f6f8;color:#20242c}
main{max-width:860px;margin:0 auto;padding:32px 20px 64px}
h1{font-size:28px;margin:0}h2{font-size:18px;margin:32px 0 8px}
p.lead{color:#6e7480;margin:4px 0 20px}
table{border-collapse:collapse;width:100%;background:#fff;border-radius:8px;overflow:hidden}
th,td{text-align:left;padding:7px 12px;border-bottom:1px solid #e4e7ec;vertical-align:top}
th{font-weight:600;color:#6e7480}td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}
.wide{overflow-x:auto}img{width:100%;border-radius:8px;display:block}
.bad{background:#fdecea;border-left:4px solid #c62828;border-radius:4px;padding:12px 16px}
code{font-size:14px;overflow-wrap:anywhere}a{color:#1f6fd6}
@media(prefers-color-scheme:dark){body{background:#16181d;color:#e6e8ec}table{background:#1f2229}
th,td{border-color:#2e323b}th,p.lead{color:#9aa1ad}.bad{background:#3a1d1c}a{color:#7db1f5}}
"""


def page(
    details: RunDetails,
    plot: str | None,
    exits: Sequence[tuple[DeviceId, str, Exit]],
    here: Collection[str],
) -> str:
    """``plot``: an SVG. ``exits``: device, task and end of a trainer. ``here``: outputs to be opened."""
    entry = details.entry
    parts = [_head(entry), *_ending(entry.phase)]
    if plot is not None:
        # As a picture of its own it can hold no link and run nothing, whatever is in it.
        data = base64.b64encode(plot.encode()).decode("ascii")
        parts.append(f'<img alt="The metrics over the steps" src="data:image/svg+xml;base64,{data}">')
    else:
        parts.append("<p>The script reported no numbers.</p>")
    parts += _section("Laptops", _members(details, exits))
    parts += _section("Speed", _together(details))
    parts += _section("Metrics at the end", _pairs(_metrics(entry)))
    parts += _section("Times", _pairs(_times(entry)))
    parts += _section("Epochs", _epochs(details))
    parts += _section("Files", _files(entry, here))
    parts += _section("This run", _pairs(_about(details)))
    body = "\n".join(parts)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; img-src data:; '
        "style-src 'unsafe-inline'\">\n"
        '<meta name="viewport" content="width=device-width">\n'
        f"<title>{_text(entry.script, 80)}: {_text(outcome(entry.phase))}</title>\n"
        f"<style>{_STYLE}</style></head>\n<body><main>\n{body}\n</main></body></html>\n"
    )


def outcome(phase: phases.Phase) -> str:
    match phase:
        case phases.Finished():
            return "finished"
        case phases.Stopped(by=by):
            return f"stopped on {by}" if by else "stopped"
        case phases.Failed():
            return "failed"
    return "not ended"


def _head(entry: RunEntry) -> str:
    count = len(entry.devices)
    words = [
        outcome(entry.phase),
        "one laptop" if count == 1 else f"{count} laptops",
        _when(entry.started_s),
        *([_seconds(entry.duration_s)] if entry.duration_s is not None else []),
    ]
    lead = " · ".join(_text(word) for word in words)
    return f'<h1>{_text(entry.script, 120)}</h1>\n<p class="lead">{lead}</p>'


def _ending(phase: phases.Phase) -> list[str]:
    if not isinstance(phase, phases.Failed):
        return []
    return [f'<div class="bad">{_problem(phase.problem)}</div>']


def _problem(problem: Problem) -> str:
    fix = f"<br>{_text(problem.fix, 600)}" if problem.fix else ""
    return f"<b>{_text(problem.what, 600)}</b>{fix}"


def _members(details: RunDetails, exits: Sequence[tuple[DeviceId, str, Exit]]) -> str:
    plan, weights = details.plan, details.entry.summary.weights_sha256
    if plan is None:
        return ""
    rows = []
    for member in plan.members:
        device = member.device
        steps = details.steps.get(device, ())
        ends = [_end(task, exit, len(plan.tasks_of(device)) > 1) for by, task, exit in exits if by == device]
        rows.append(
            (
                f"<b>{_text(member.name, 60)}</b><br><code>{_text(short(device))}</code>",
                _text(" ".join(task.name for task in plan.tasks_of(device)) if not plan.solo else "alone"),
                _text(_share(details, member)),
                *(_text(words) for words in _speed(steps)),
                f"<code>{_text(weights[device][:16])}</code>" if weights.get(device) else "",
                "<br>".join(ends),
            )
        )
    heads = ("laptop", "tasks", "share", "samples/s", "step", "waits", "weights (SHA-256)", "ended")
    return _table(heads, rows, numbers=(3, 4, 5))


def _share(details: RunDetails, member: Member) -> str:
    """Rows of the batch at the end; where nobody told, the plan's."""
    settled = details.entry.summary.settled
    if settled is not None and settled.shares:
        return f"{settled.shares.get(member.device, 0):,} of {sum(settled.shares.values()):,} rows"
    members = details.plan.members if details.plan is not None else ()
    return f"{member.share} of {sum(each.share for each in members)}"


def _together(details: RunDetails) -> str:
    """What was expected of several laptops, and what came out."""
    if details.plan is None:
        return ""
    summary = details.entry.summary
    said = came_out(summary, details.plan) or expected(summary.expectation, details.plan)
    return "".join(f"<p>{_text(words, 600)}</p>" for words in said.lines)


def _speed(steps: Sequence[Progress]) -> tuple[str, str, str]:
    """Means over what was reported: samples/s of all members, time of a step, of it waiting."""
    samples = [step.samples_s for step in steps if step.samples_s is not None]
    times = [step.step_s for step in steps if step.step_s]
    waits = [step.wait_s for step in steps if step.wait_s is not None]
    return (
        f"{sum(samples) / len(samples):,.0f}" if samples else "",
        f"{1000 * sum(times) / len(times):,.1f} ms" if times else "",
        f"{1000 * sum(waits) / len(waits):,.1f} ms" if waits else "",
    )


def _end(task: str, exit: Exit, several: bool) -> str:
    words = _text(exit.reason.replace("-", " ")) + (
        "" if exit.problem is None else f": {_problem(exit.problem)}"
    )
    return f"{_text(task)}: {words}" if several else words


def _metrics(entry: RunEntry) -> list[tuple[str, str]]:
    logs = entry.summary.last_logs
    return [(name, f"{logs[name]:.6g}") for name in sorted(logs, key=loss_first)]


def _times(entry: RunEntry) -> list[tuple[str, str]]:
    summary = entry.summary
    found = [
        ("first step after", _seconds(summary.first_step_s)),
        ("training", _seconds(summary.train_s)),
        ("in all", _seconds(summary.total_s)),
        ("epochs", str(summary.epochs or "")),
        ("steps", f"{summary.steps:,}" if summary.steps else ""),
        ("steps/s", f"{summary.steps_s:,.2f}" if summary.steps_s is not None else ""),
        ("samples/s, on average", f"{summary.samples_s:,.0f}" if summary.samples_s is not None else ""),
    ]
    return [pair for pair in found if pair[1]]


def _epochs(details: RunDetails) -> str:
    devices = shown_devices(details)
    names = member_names(details)
    rows = [(device, epoch) for device in devices for epoch in details.epochs.get(device, ())]
    metrics = sorted({name for _, epoch in rows for name in epoch.logs}, key=loss_first)
    several_fits = len({epoch.fit for _, epoch in rows}) > 1
    shown = []
    for device, epoch in rows[-MOST_EPOCHS:]:
        whose = f"{names.get(device, short(device))}: " if len(devices) > 1 else ""
        fit = f"fit {epoch.fit + 1}, " if several_fits else ""
        logs = (f"{epoch.logs[name]:.6g}" if name in epoch.logs else "" for name in metrics)
        cells = (f"{whose}{fit}{epoch.epoch + 1}/{epoch.epochs}", *logs, f"{epoch.seconds:,.1f} s")
        shown.append(tuple(_text(cell) for cell in cells))
    table = _table(("epoch", *metrics, "time"), shown, numbers=range(1, len(metrics) + 2))
    if len(rows) > len(shown):
        table += f"<p>The last {len(shown):,} of {len(rows):,}; <code>history.csv</code> has all.</p>"
    return table


def _files(entry: RunEntry, here: Collection[str]) -> str:
    listed = []
    for path in entry.summary.outputs[:MOST_FILES]:
        name = f"<code>{_text(path, 300)}</code>"
        listed.append(f'<a href="outputs/{escape(quote(path))}">{name}</a>' if path in here else name)
    if (more := len(entry.summary.outputs) - len(listed)) > 0:
        listed.append(f"and {more:,} more")
    return "<br>".join(listed)


def _about(details: RunDetails) -> list[tuple[str, str]]:
    entry, plan = details.entry, details.plan
    found = [
        ("run", entry.run),
        ("script", entry.source or entry.script),
        ("arguments", " ".join(entry.arguments)),
        ("strategy", entry.summary.strategy),
    ]
    if plan is not None:
        starter = {member.device: member.name for member in plan.members}.get(
            plan.starter, short(plan.starter)
        )
        found += [
            ("started on", starter),
            ("seed", str(plan.seed)),
            ("numbers on the wire", plan.wire),
            ("project", plan.project),
        ]
    found += [
        (f"weights on {name}", digest)
        for device, name in member_names(details).items()
        if (digest := entry.summary.weights_sha256.get(device))
    ]
    return [pair for pair in found if pair[1]]


def _section(title: str, content: str) -> list[str]:
    return [f'<h2>{escape(title)}</h2>\n<div class="wide">{content}</div>'] if content else []


def _pairs(pairs: Sequence[tuple[str, str]]) -> str:
    rows = "".join(
        f"<tr><th>{_text(name, 80)}</th><td><code>{_text(value, 600)}</code></td></tr>"
        for name, value in pairs
    )
    return f"<table>{rows}</table>" if rows else ""


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]], numbers: Collection[int]) -> str:
    """``rows`` are HTML already; ``heads`` are not."""

    def cells(kind: str, values: Sequence[str]) -> str:
        return "".join(
            f'<{kind} class="n">{value}</{kind}>' if place in numbers else f"<{kind}>{value}</{kind}>"
            for place, value in enumerate(values)
        )

    body = "".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    return f"<table><tr>{cells('th', [_text(head, 60) for head in heads])}</tr>{body}</table>" if body else ""


def _text(text: str, limit: int = 200) -> str:
    return escape(plain(text, limit))


def _when(unix_s: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(unix_s))


def _seconds(seconds: float | None) -> str:
    if seconds is None:
        return ""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min {rest:02} s" if hours else f"{minutes} min {rest:02} s"
