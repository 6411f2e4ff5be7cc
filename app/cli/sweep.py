"""``tandem sweep SCRIPT -- --lr 0.1,0.01``: trains with every combination of values, each on one laptop.

Repeated Ctrl-C: stop, terminate, leave.
"""

from __future__ import annotations

import argparse

from app.cli import run_flags, spec
from app.cli.command_line import OneOf, argument, node_subcommand
from app.cli.exit_codes import ExitCode
from app.cli.interrupts import Interrupts, unless
from app.cli.run import DECLINED, obey
from app.cli.screen import Screen
from app.follower import Follower
from app.words import sweep_words
from core.history.best import best_trial, metric_of
from core.sweep.values import argument_sets
from core.vocabulary.answers import SweepAccepted
from core.vocabulary.commands import ResumeSweep, StartSweep, StopSweep
from core.vocabulary.errors import TandemError
from core.vocabulary.events import SweepChanged, TrialChanged
from core.vocabulary.ids import SweepId
from core.vocabulary.sweep import MODELS_KEPT, Sweep, SweepSpec
from core.vocabulary.text import listed, plain

FIXED = (
    *spec.LAPTOPS.arguments,
    argument("--not-here", action="store_true", help="this laptop takes no trials"),
    argument(
        "--repeat", type=int, default=1, metavar="K", help="train each combination with K seeds (default: 1)"
    ),
    argument(
        "--models",
        default=str(MODELS_KEPT),
        metavar="N|all",
        help="keep the models of the best N trials (default: %(default)s)",
    ),
    argument("--seed", type=int, metavar="N", help="random seed of every combination (default: a new one)"),
    *spec.FILES,
    *run_flags.flags(("downloads",)),
)
"""What a sweep cannot change later."""


@node_subcommand(
    "try several values of a script's arguments",
    OneOf(
        (
            spec.SCRIPT,
            argument(
                "--resume",
                metavar="SWEEP",
                nargs="?",
                const="",
                help="continue a sweep that was stopped or cut off (default: the newest)",
            ),
        ),
        required=True,
    ),
    argument("--random", type=int, metavar="N", help="try N combinations, drawn at random (default: all)"),
    spec.LAPTOPS,
    *FIXED[len(spec.LAPTOPS.arguments) :],
    more="""\
Everything after -- goes to the script, and a comma separates the values to try:

  tandem sweep train.py --with ben -- --lr 0.1,0.01,0.001 --layers 2,4

is 6 trials. Each trains on one laptop alone, at that laptop's full speed; a laptop takes the next trial when
it is free. \\, is a comma within a value. Users of other laptops are asked once, about all arguments.

tandem sweep --resume continues the newest sweep. Values after -- add trials; users of other laptops are
asked again.

Ctrl-C stops all trials at the end of a step. A second one ends the trainers at once; a third one exits
without waiting.
""",
    again=None,
    resumes=False,
    roles=[],
    shares=[],
    strategy=None,
)
async def sweep(arguments: argparse.Namespace, screen: Screen, follower: Follower) -> int:
    with Interrupts() as interrupts:
        return await sweep_on(arguments, follower, screen, interrupts)


async def sweep_on(
    arguments: argparse.Namespace, follower: Follower, screen: Screen, interrupts: Interrupts
) -> int:
    """Returns the exit code."""
    begun = await _begin(arguments, follower, screen)
    return _report(screen, await _follow(follower, screen, begun, interrupts), interrupts)


async def _begin(arguments: argparse.Namespace, follower: Follower, screen: Screen) -> SweepId:
    words = arguments.script_arguments
    sets = argument_sets(words, arguments.random) if words else ()
    if arguments.resume is not None:
        _check_resume(arguments)
        command = ResumeSweep(sweep=SweepId(arguments.resume), argument_sets=sets)
        return (await follower.submit(command, SweepAccepted)).sweep
    run = await spec.spec_of(arguments, follower, screen.say)
    wanted = SweepSpec(
        run=run,
        argument_sets=sets or ((),),
        repeat=arguments.repeat,
        here=not arguments.not_here,
        models=_models(arguments.models),
    )
    return (await follower.submit(StartSweep(spec=wanted), SweepAccepted)).sweep


def _check_resume(arguments: argparse.Namespace) -> None:
    """Raises ``TandemError`` for options that would change the sweep."""
    given = [each.flag for each in FIXED if each.is_given(arguments)]
    if given:
        raise TandemError(
            code="bad-option",
            what=f"A resumed sweep keeps its options: --resume cannot be used with {listed(given)}.",
            fix="Omit them, or start a new sweep.",
        )


def _models(text: str) -> int | None:
    if text == "all":
        return None
    if not (text.isascii() and text.isdigit()):
        raise TandemError(
            code="bad-option",
            what=f"--models does not accept {plain(text, 60)!r}.",
            fix="Give a whole number, or all.",
        )
    return int(text)


async def _follow(follower: Follower, screen: Screen, begun: SweepId, interrupts: Interrupts) -> Sweep:
    """Shows the sweep until it is over, or the person leaves."""
    obeying = obey(follower, screen, interrupts, StopSweep(), "Stopping all trials at the end of a step.")
    swept = await unless(obeying, _watch(follower, screen, begun)) or follower.state.sweep
    assert swept is not None
    return swept


async def _watch(follower: Follower, screen: Screen, begun: SweepId) -> Sweep:
    known: Sweep | None = None
    while True:
        event, state = await follower.next()
        now = state.sweep
        if now is None or now.sweep != begun or not isinstance(event, SweepChanged | TrialChanged):
            continue
        if isinstance(event, TrialChanged):
            before = known.trial(event.trial.number) if known is not None else None
            if words := sweep_words.change_words(event.trial, before, now):
                screen.say(words)
        elif known is None or len(known.trials) != len(now.trials):
            screen.say(f"The sweep {begun} has {len(now.trials)} trials.")
        known = now
        if not now.under_way and isinstance(event, SweepChanged):
            return now


def _report(screen: Screen, swept: Sweep, interrupts: Interrupts) -> int:
    best = best_trial(swept)
    whole = swept.phase == "finished" and all(trial.status == "finished" for trial in swept.trials)
    if screen.json:
        screen.result(
            {
                "ok": whole,
                "sweep": swept.sweep,
                "phase": swept.phase,
                "problem": swept.problem,
                "metric": metric_of(swept),
                "best": best.number if best is not None else None,
                "trials": swept.trials,
            }
        )
    else:
        show(screen, swept)
        if swept.phase in ("stopped", "failed"):
            screen.say(f"To continue: tandem sweep --resume {swept.sweep}")
    if whole:
        return ExitCode.OK
    if interrupts.count:
        return ExitCode.INTERRUPTED
    code = swept.problem.code if swept.problem is not None else ""
    if swept.phase == "stopped" or code == "stopped":
        return ExitCode.STOPPED
    return ExitCode.REFUSED if code in DECLINED else ExitCode.FAILED


def show(screen: Screen, swept: Sweep) -> None:
    """The trials in a table, the best first, and how the sweep ended."""
    from rich.table import Table

    metric = metric_of(swept)
    table = Table(box=None, pad_edge=False)
    for name in ("trial", "arguments", "seed", "result", ""):
        table.add_column(name)
    for trial in sweep_words.in_order(swept):
        value = sweep_words.value_words(trial, metric)
        words = sweep_words.arguments_words(trial), str(trial.seed), value, sweep_words.state_words(trial)
        table.add_row(str(trial.number), *words)
    screen.show(table)
    screen.say(sweep_words.outcome_words(swept), "bold")
    if (best := best_trial(swept)) is not None:
        screen.say(f"{sweep_words.best_words(swept)} Its run: {best.run}")
    if swept.phase != "finished" and swept.problem is not None and swept.problem.fix:
        screen.say(plain(swept.problem.fix, 400))
