"""``tandem runs [RUN]``: the history, newest first, or one run with its epochs and the end of its log, or one
sweep with its trials; names, annotates and deletes them."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from app.cli import completion, sweep
from app.cli.command_line import argument, node_subcommand
from app.cli.exit_codes import ExitCode
from app.cli.screen import Screen
from app.follower import Follower
from app.models.run_again import may_go_on, where_on
from app.words import run_words
from app.words.device_names import member_names
from app.words.sweep_words import lines_of, trials_words
from core.report.laptops import timeline
from core.vocabulary import answers, units
from core.vocabulary.commands import DeleteRun, FindCheckpoints, GetRun, LabelRun, ListRuns
from core.vocabulary.errors import TandemError
from core.vocabulary.ids import DeviceId, RunId, short, started_s
from core.vocabulary.phases import Failed
from core.vocabulary.text import plain, plain_lines

if TYPE_CHECKING:
    from rich.table import Table

LOG_LINES = 20
_NO_RUN = TandemError(
    code="usage",
    what="No run was given.",
    fix="Give one: tandem runs RUN --name … (tandem runs lists them).",
)


@node_subcommand(
    "list the runs so far; show, name or delete one",
    argument(
        "run",
        metavar="RUN",
        nargs="?",
        help="the id of a run or a sweep, or a unique beginning of it",
        completer=completion.runs,
    ),
    argument("--limit", type=int, default=20, metavar="N", help="list the newest N (default: %(default)s)"),
    argument("--name", help="RUN's name on this laptop; an empty one removes it"),
    argument("--note", metavar="TEXT", help="a note about RUN on this laptop"),
    argument("--delete", action="store_true", help="remove RUN and its folder, with its model, for good"),
)
async def runs(arguments: argparse.Namespace, screen: Screen, follower: Follower) -> int:
    changes = arguments.delete or arguments.name is not None or arguments.note is not None
    if changes and not arguments.run:
        raise _NO_RUN
    if changes:
        return await _change(follower, screen, arguments)
    if arguments.run:
        return await _one(follower, screen, RunId(arguments.run))
    return await _all(follower, screen, max(1, arguments.limit))


async def _change(follower: Follower, screen: Screen, arguments: argparse.Namespace) -> int:
    """RUN may be the beginning of an id; the output has the whole one."""
    found = await follower.submit(GetRun(run=RunId(arguments.run), points=False), answers.RunDetails)
    run = found.entry.run
    if arguments.delete:
        await follower.submit(DeleteRun(run=run), answers.Done)
    else:
        await follower.submit(LabelRun(run=run, name=arguments.name, note=arguments.note), answers.Done)
    screen.end({"ok": True, "run": run}, f"{run} is {'deleted' if arguments.delete else 'changed'}.")
    return ExitCode.OK


async def _all(follower: Follower, screen: Screen, limit: int) -> int:
    found = await follower.submit(ListRuns(limit=limit), answers.RunList)
    if screen.json:
        lists = {"runs": found.runs, "sweeps": found.sweeps, "reports": found.reports}
        screen.result({"ok": True, "problem": found.problem, **lists})
        return ExitCode.OK
    if found.problem is not None:
        screen.problem(found.problem)
    if entries := lines_of(found):
        screen.show(_table(entries[:limit]))
    else:
        screen.say("Nothing has been trained yet. Try: tandem demo")
    if found.reports:
        screen.say("Reports from other laptops:")
    for report in found.reports:
        sender = f", from {plain(report.sender, 40)}" if report.sender else ""
        when = units.moment(report.came_s)
        screen.say(f"  {when}  {plain(report.script, 60)}{sender}: {plain(report.path, 400)}")
    return ExitCode.OK


async def _one(follower: Follower, screen: Screen, run: RunId) -> int:
    found = await follower.submit(GetRun(run=run), answers.RunDetails)
    if screen.json:
        screen.result({"ok": True, "run": found})
        return ExitCode.OK
    entry = found.entry
    if found.sweep is not None:
        sweep.show(screen, found.sweep)
        if found.report:
            screen.say(f"Report: {plain(found.report, 400)}")
        return ExitCode.OK
    screen.say(
        " ".join((entry.run, plain(entry.script, 80), *(plain(word, 60) for word in entry.arguments))), "bold"
    )
    if entry.name:
        screen.say(plain(entry.name, 120), "bold")
    for line in plain_lines(entry.note):
        screen.say(line)
    when = units.moment(started_s(entry.run, entry.started_s))
    screen.say(f"{when}, {run_words.outcome_words(entry.phase, entry.summary)}, on {_devices(entry)}")
    if entry.resumed is not None:
        screen.say(f"Resumed from run {plain(entry.resumed, 40)}.")
    if isinstance(entry.phase, Failed):
        screen.problem(entry.phase.problem)
    names = member_names(found)
    for device, epochs in found.epochs.items():
        for epoch in epochs:
            name = names.get(DeviceId(device), short(device))
            screen.say(f"{name}: {run_words.epoch_line(epoch)}")
    for row, turn in zip(timeline(found), found.membership, strict=False):
        if turn.change != "joined":
            screen.say(f"{row.clock}, after {row.after}: {plain(f'{row.name} {row.words}', 200)}")
    for line in run_words.summary_lines(entry.summary, names, entry.folder, found.plan):
        screen.say(line)
    if may_go_on(entry):
        await follower.node.submit(FindCheckpoints(run=entry.run))
        checkpoint, lender = where_on(entry.run, found.checkpoint, follower.state)
        if checkpoint is not None:
            words = run_words.goes_on_words(checkpoint, lender)
            screen.say(f"{words} To resume: tandem resume {entry.run}")
    if found.report:
        screen.say(f"Report: {plain(found.report, 400)}")
    for line in plain_lines(found.log)[-LOG_LINES:]:
        screen.say(f"  {line}", "dim")
    return ExitCode.OK


def _table(entries: Sequence[answers.RunEntry]) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for column in ("run", "when", "took"):
        table.add_column(column, no_wrap=True)
    for column in ("script", "devices", "", ""):
        table.add_column(column, overflow="fold")
    for entry in entries:
        table.add_row(
            entry.run,
            units.moment(started_s(entry.run, entry.started_s)),
            "" if entry.duration_s is None else units.clock(entry.duration_s),
            ", ".join(filter(None, (plain(entry.name or entry.script, 60), trials_words(entry)))),
            _devices(entry),
            run_words.outcome_words(entry.phase, entry.summary),
            run_words.logs_words(entry.summary.last_logs),
        )
    return table


def _devices(entry: answers.RunEntry) -> str:
    return ", ".join(plain(name, 40) for name in entry.devices)
