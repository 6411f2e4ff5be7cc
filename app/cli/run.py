"""``tandem run SCRIPT`` and ``tandem resume RUN``: trains, shows the run and reports the result.

Repeated Ctrl-C: stop, terminate, leave.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import AsyncIterable

from app.cli import completion, other_run, spec
from app.cli.command_line import argument, node_subcommand
from app.cli.exit_codes import ExitCode
from app.cli.interrupts import Interrupts, unless
from app.cli.pipes import Stdin
from app.cli.prompts import Asker
from app.cli.run_display import Display, FetchLines, Moving, Plain
from app.cli.screen import Screen
from app.follower import Follower
from app.models import run_again
from app.words import device_names, run_words
from core.run.departure import may_be_left
from core.speed.sentences import inexact_words
from core.vocabulary.answers import Done, RunAccepted, RunDetails, ScriptRead
from core.vocabulary.commands import AnalyseScript, GetRun, Quit, StartRun, StopRun, StopSweep
from core.vocabulary.errors import TandemError
from core.vocabulary.events import NoticeRaised, RunPhaseChanged, RunPlanned
from core.vocabulary.ids import RunId
from core.vocabulary.phases import Failed, Finished, Phase, Stopped, ended, is_followed
from core.vocabulary.plan import RunSpec
from core.vocabulary.text import plain

DECLINED = frozenset({"consent-refused", "no-consent", "device-busy", "not-paired", "train-crossed"})
"""Failures caused by another laptop's refusal."""
NOT_GONE_ON = "not-gone-on"
"""Code of the notice that a run could not continue as intended."""
FOLLOWS_S = 120.0
"""Maximum time between a run's end and the start of the run that continues it."""
ALONE = {"yes": True, "no": False}


@node_subcommand(
    "train a Keras script on this and other laptops",
    *spec.ARGUMENTS,
    more="""\
Everything after -- goes to the script: tandem run train.py --with anna -- --epochs 20

Ctrl-C stops the run at the end of a step. A second one ends the trainers at once; a third one exits without
waiting.
""",
    resumes=False,
)
async def run(arguments: argparse.Namespace, screen: Screen, follower: Follower) -> int:
    wanted = await spec.spec_of(arguments, follower, screen.say)
    await acceptance(follower, screen, wanted, withdraw=arguments.accept_differences is False)
    with Interrupts() as interrupts:
        keyboard = Stdin() if sys.stdin.isatty() and not screen.json else None
        return await train(follower, screen, wanted, interrupts, keyboard)


@node_subcommand(
    "resume a run that was stopped or failed",
    argument(
        "again",
        metavar="RUN",
        help="a run's id or a unique beginning of it",
        completer=completion.runs,
    ),
    *spec.WHERE,
    more="""\
The run resumes in the middle of its epoch, with its laptops, shares, seed and arguments unless you change
them. The laptop with the newest checkpoint sends it to the others.
""",
    script=None,
    seed=None,
    strategy=None,
    resumes=True,
)
async def resume(arguments: argparse.Namespace, screen: Screen, follower: Follower) -> int:
    return await run(arguments, screen, follower)


async def acceptance(follower: Follower, screen: Screen, wanted: RunSpec, *, withdraw: bool) -> None:
    """Accepts differences from one machine's result for the script, or withdraws that."""
    if wanted.solo:
        return  # one laptop's result is its own
    state = follower.state
    known = state.me.settings.accepted if state.me is not None else ()
    read = await follower.node.submit(AnalyseScript(path=wanted.script)) if known else None
    code = read.code if isinstance(read, ScriptRead) else ""  # script errors are reported with the run
    if code in known and withdraw:
        await follower.submit(run_again.withdrawing(code, state), Done)
        screen.say("Differences from one laptop's result are no longer accepted for this script.")
    elif code in known or wanted.accept_differences:
        kept = "for this script" if code in known else "for this run"
        how = " Use --no-accept-differences to withdraw that." if code in known else ""
        screen.say(
            f"Differences from one laptop's result are accepted {kept} and do not change the exit code.{how}"
        )


async def train(
    follower: Follower,
    screen: Screen,
    wanted: RunSpec,
    interrupts: Interrupts,
    keyboard: AsyncIterable[bytes] | None,
) -> int:
    """Trains to the end of the run; if another laptop's run goes first, to the end of that one. Returns
    the exit code."""
    try:
        begun = await start_or_ask(follower, screen, wanted, interrupts, keyboard)
    except TandemError as error:
        other = await interrupts.unless(other_run.request(follower, error.problem))
        if other is None:
            raise TandemError.of(run_again.with_other_ways(error.problem, wanted, follower.state)) from error
        screen.problem(error.problem)
        return await take_part(follower, screen, other, interrupts, keyboard)
    if begun is None:
        return ExitCode.INTERRUPTED
    begun, phase = await follow(follower, screen, begun, interrupts)
    if isinstance(phase, Failed):
        phase = Failed(problem=run_again.with_other_ways(phase.problem, wanted, follower.state))
    code = await report(follower, screen, begun, phase, interrupted=interrupts.count > 0)
    if not isinstance(phase, Failed) or interrupts.count:
        return code
    other = await interrupts.unless(other_run.request(follower, phase.problem))
    if other is not None:
        return await take_part(follower, screen, other, interrupts, keyboard)
    return ExitCode.INTERRUPTED if interrupts.count else code


async def take_part(
    follower: Follower,
    screen: Screen,
    run: RunId,
    interrupts: Interrupts,
    keyboard: AsyncIterable[bytes] | None,
) -> int:
    """Takes part in another laptop's run if this user allows it. Never a success: the user's own run did not
    happen."""
    if await other_run.join(follower, screen, run, interrupts, keyboard):
        present = follower.state.run
        is_over = present is None or present.over
        if present and is_over:
            phase = present.phase
        else:
            run, phase = await follow(follower, screen, run, interrupts)
        await report(follower, screen, run, phase, interrupted=interrupts.count > 0)
    return ExitCode.INTERRUPTED if interrupts.count else ExitCode.REFUSED


async def start_or_ask(
    follower: Follower,
    screen: Screen,
    wanted: RunSpec,
    interrupts: Interrupts,
    keyboard: AsyncIterable[bytes] | None,
) -> RunId | None:
    """Like ``start``; if nobody else can take part, asks the person at the ``keyboard``, if any."""
    try:
        return await start(follower, screen, wanted, interrupts)
    except TandemError as error:
        if error.code != "would-be-alone" or keyboard is None:
            raise
        if await interrupts.unless(other_run.request(follower, error.problem)) or interrupts.count:
            raise
        screen.say(plain(error.what, 600), "bold")
        if not await _alone_is_meant(screen, interrupts, keyboard):
            raise
    me = follower.state.me
    on_its_own = run_again.alone(wanted, me.device if me is not None else None)
    return await start(follower, screen, on_its_own, interrupts)


async def start(follower: Follower, screen: Screen, wanted: RunSpec, interrupts: Interrupts) -> RunId | None:
    """None: Ctrl-C came before the run began. Reading its files, or fetching a checkpoint for it,
    may take minutes."""
    stopping = asyncio.create_task(_stop_before(follower, screen, interrupts), name="run-interrupts")
    leave = follower.node.subscribe(FetchLines(screen))
    try:
        return (await follower.submit(StartRun(spec=wanted), RunAccepted)).run
    except TandemError as error:
        if interrupts.count == 0 or error.problem.code != "stopped":
            raise
        screen.problem(error.problem)
        return None
    finally:
        leave()
        stopping.cancel()
        await asyncio.gather(stopping, return_exceptions=True)


async def follow(
    follower: Follower, screen: Screen, run: RunId, interrupts: Interrupts
) -> tuple[RunId, Phase]:
    """Shows the run until it is over and obeys Ctrl-C; if the run continues in a new one, follows that
    too. Returns the last run, and its last phase or the phase it was left in."""
    display: Display = Moving(screen) if screen.live else Plain(screen)
    obeying = obey(follower, screen, interrupts, StopRun(), "Stopping at the end of this step.")
    with display:
        followed = await unless(obeying, _watch(follower, display, run))
    if followed is not None:
        return followed
    present = follower.state.run
    assert present is not None
    return present.plan.run, present.phase


async def report(follower: Follower, screen: Screen, run: RunId, phase: Phase, *, interrupted: bool) -> int:
    """Reports the result, which determines the exit code."""
    answer = await follower.node.submit(GetRun(run=run))
    folder = answer.entry.folder if isinstance(answer, RunDetails) else ""
    present = follower.state.run
    summary = present.summary if present is not None and present.plan.run == run else None
    differs = isinstance(phase, Finished) and summary is not None and summary.differs
    problem = phase.problem if isinstance(phase, Failed) else None
    if screen.json:
        screen.result(
            {
                "ok": isinstance(phase, Finished) and not differs,
                "run": run,
                "phase": phase,
                "problem": problem,
                "summary": summary,
                "told": summary.told if summary is not None else (),
                "not_exact": inexact_words(summary) if summary is not None else "",
                "folder": folder,
            }
        )
    else:
        if problem is not None:
            screen.problem(problem)
        else:
            outcome = run_words.outcome_words(phase, summary)
            screen.say(f"The run is {outcome}." if ended(phase) else "Not waiting for the run to end.")
        if summary is not None and present is not None:
            names = device_names.names_of(follower.state, present.members)
            for line in run_words.summary_lines(summary, names, folder, present.plan):
                screen.say(line)
    match phase:
        case Finished():
            return ExitCode.DIFFERS if differs else ExitCode.OK
        case Failed(problem=why):
            return ExitCode.REFUSED if why.code in DECLINED else ExitCode.FAILED
        case Stopped() if not interrupted:
            return ExitCode.STOPPED
    return ExitCode.INTERRUPTED


async def _alone_is_meant(screen: Screen, interrupts: Interrupts, keyboard: AsyncIterable[bytes]) -> bool:
    """Ctrl-C and the end of the input mean no."""
    async with Asker(screen, keyboard) as asker:
        return await interrupts.unless(asker.ask("Train on this laptop alone?", ALONE)) is True


async def _watch(follower: Follower, display: Display, run: RunId) -> tuple[RunId, Phase]:
    last: Phase | None = None
    while True:
        try:
            async with asyncio.timeout(None if last is None else FOLLOWS_S):
                event, state = await follower.next()
        except TimeoutError:
            assert last is not None, "without it there is no limit"
            return run, last
        display.on_event(event, state)
        match event:
            case RunPhaseChanged(run=told, phase=phase) if told == run and ended(phase):
                if not is_followed(phase):
                    return run, phase
                last = phase
            case RunPlanned(plan=plan) if last is not None and plan.resume and plan.resume.run == run:
                run, last = plan.run, None
            case NoticeRaised(problem=problem) if last is not None and problem.code == NOT_GONE_ON:
                return run, Failed(problem=problem)


async def _stop_before(follower: Follower, screen: Screen, interrupts: Interrupts) -> None:
    while True:
        await interrupts.wait_next()
        screen.say("Stopping.")
        await follower.node.submit(StopRun())


async def obey(
    follower: Follower, screen: Screen, interrupts: Interrupts, stop: StopRun | StopSweep, first: str
) -> None:
    """Sends ``stop`` at each Ctrl-C, and says what follows; ``first``: from the first one. Returns when the
    person wants to leave, or the system ends this program."""
    for words in (
        f"{first} Press Ctrl-C again to end the trainers at once.",
        "Ending the trainers. Press Ctrl-C again to exit without waiting.",
    ):
        await interrupts.wait_next()
        if interrupts.by_system and not follower.own:
            return
        if interrupts.by_system and may_be_left(follower.state.run):
            await follower.node.submit(Quit(leaves=True))
            return
        screen.say(words)
        await follower.node.submit(stop)
    await interrupts.wait_next()
    await follower.node.submit(stop)
