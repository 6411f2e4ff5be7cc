"""``tandem member``: one member of a run in a cluster made by others: no node, no pairing, no window."""

from __future__ import annotations

import argparse
import asyncio
import os
import tempfile
from pathlib import Path

from msgspec.structs import replace

from app.cli import run_flags
from app.cli.command_line import argument, subcommand
from app.cli.exit_codes import ExitCode
from app.cli.interrupts import Interrupts
from app.cli.member_waits import MemberWaits
from app.cli.screen import Screen
from core.exchange import keys, membership
from core.exchange.membership import Membership
from core.export.job import check_script, check_shares
from core.home.private_file import read_private
from core.project import checkpoint_store
from core.project.copy import Changed, copy_project
from core.project.scan import scan_project
from core.run.modules import check_here
from core.run.problems import nothing_shared
from core.script.analysis import analyse
from core.script.find import find_script
from core.speed.sentences import inexact_words
from core.speed.summary import inexactly
from core.supervisor.driver import TrainerProcess
from core.vocabulary.errors import Problem, TandemError
from core.vocabulary.limits import MEET_S
from core.vocabulary.options import RunOptions
from core.vocabulary.phases import Exit
from core.vocabulary.plan import StrategyKind
from core.vocabulary.progress import LogLines, Summary
from core.vocabulary.run_folder import log_name
from core.vocabulary.text import capitalised, plain_lines
from core.vocabulary.trainer_messages import ExchangeKeys, Progressed, Report, Said, StatusChanged, Train

LEAST_SECRET_BYTES = 32


@subcommand(
    "take part in a run on a cluster: Slurm, Kubernetes, TF_CONFIG",
    argument("script", metavar="SCRIPT", help="a Keras script, or a folder with exactly one"),
    argument(
        "--secret", metavar="FILE", help="the secret that all members share; only you may be able to read it"
    ),
    argument("--seed", type=int, default=0, metavar="N", help="random seed (default: 0)"),
    argument(
        "--share",
        default="",
        metavar="ROWS,…",
        help="parts of each batch by rank, such as 48,16 (default: equal)",
    ),
    *run_flags.flags(run_flags.OF_A_MEMBER),
    argument("--exchange", help=argparse.SUPPRESS),  # older exported jobs may give it
    argument(
        "--checkpoints",
        metavar="DIR",
        help="a folder that all members share: an interrupted training resumes from the newest one in it",
    ),
    argument("--save", metavar="DIR", help="where the first member saves the trained model"),
    argument("--meet", type=float, default=MEET_S, metavar="SECONDS", help="how long to wait for the others"),
    more="""\
The members are read from TF_CONFIG, CLUSTER_SPEC, Slurm's variables or an Indexed Job's index. They connect
over TLS, with keys derived from a shared secret. docs/cluster.md has an example for each launcher.
""",
)
async def member(arguments: argparse.Namespace, screen: Screen) -> int:
    if arguments.exchange not in (None, "tls"):
        raise TandemError(
            code="bad-option",
            what=f"Members no longer connect by {arguments.exchange}: its port would be open to the network.",
            fix="Export the job again; or omit --exchange and give all members a secret: --secret FILE.",
        )
    run = membership.read(os.environ)
    script = find_script(Path(arguments.script).absolute())
    read = analyse(script)
    check_script(read)
    loops = read.loops_in_mirrored_strategy
    options = run_flags.options_of(arguments, RunOptions())
    if not 0 < options.away_s < float("inf"):
        raise TandemError(
            code="bad-option",
            what=f"--wait-for-away does not accept {options.away_s / 60:g}.",
            fix="Give minutes, more than 0.",
        )
    await asyncio.to_thread(check_here, read.needs)
    for mistake in read.mistakes:
        screen.say(str(mistake.problem))
    if loops:
        _say_ignored_options(arguments, screen)
    with tempfile.TemporaryDirectory(prefix="tandem-member-") as place:
        folder = await asyncio.to_thread(_folder, script, arguments.script_arguments, run.rank, Path(place))
        order = await asyncio.to_thread(_order, arguments, run, script, folder, "own" if loops else "managed")
        screen.say(f"Member {run.rank} of {len(run.addresses)}, at {run.addresses[run.rank]}.")
        with Interrupts() as interrupts:
            waits = MemberWaits(_names(run), options.away_s)
            end, summary = await _train(order, Path(place), screen, interrupts, waits)
    told, inexact = summary.told, inexact_words(summary)
    if end.reason == "finished" and not end.shared and len(run.addresses) > 1:
        screen.say(nothing_shared())
    differs = bool(told) and not options.accept_differences
    if screen.json:
        ok = end.reason == "finished" and not differs
        ends = {"ok": ok, "rank": run.rank, "weights_sha256": end.weights_sha256}
        sync = "exact" if loops else options.sync
        screen.result({**ends, "problem": end.problem, "told": told, "sync": sync, "not_exact": inexact})
    elif end.problem is not None:
        screen.problem(end.problem)
    elif end.weights_sha256:
        screen.say(f"Its weights: {end.weights_sha256}")
    if inexact:
        screen.say(f"{capitalised(inexact)}.")
    if end.reason == "finished":
        return ExitCode.DIFFERS if differs else ExitCode.OK
    return ExitCode.INTERRUPTED if end.reason == "stopped" else ExitCode.FAILED


def _say_ignored_options(arguments: argparse.Namespace, screen: Screen) -> None:
    """Name ignored options that only ``fit`` supports: a custom loop has equal replicas and its own steps."""
    options = {
        "--share": arguments.share,
        "--sync": arguments.sync not in (None, "exact"),
        "--checkpoints": arguments.checkpoints,
        "--save": arguments.save,
    }
    if asked := [option for option, value in options.items() if value]:
        screen.say(
            f"{' and '.join(asked)} ignored: the script has a custom training loop instead of model.fit."
        )


def _folder(script: Path, arguments: tuple[str, ...], rank: int, place: Path) -> Path:
    """The first member runs in the script's folder and its outputs stay there; the others run in a copy."""
    if rank == 0:
        return script.parent
    try:
        project = scan_project(script, arguments=arguments)
        copy_project(project.manifest, script.parent, place / "work")
    except Changed as changed:
        raise TandemError(
            code="project-changed",
            what=f"{changed.path} changed while it was copied.",
            fix="Keep other programs from writing beside the script, and start the job again.",
        ) from changed
    return place / "work"


def _order(
    arguments: argparse.Namespace,
    run: Membership,
    script: Path,
    folder: Path,
    strategy: StrategyKind = "managed",
) -> Train:
    """Alike on every member except for the rank, so that all join the same run."""
    checkpoints, resume = "", ""
    if arguments.checkpoints and strategy == "managed":
        kept = Path(arguments.checkpoints).absolute()
        # All use the first member's: members write the same checkpoints, and another's may be a moment newer.
        found = checkpoint_store.newest(kept / "rank-0")
        checkpoints, resume = str(kept / f"rank-{run.rank}"), found.folder if found is not None else ""
    members = range(len(run.addresses))
    return Train(
        run=run.run,
        task=run.name(run.rank),
        folder=str(folder),
        script=script.name,
        arguments=arguments.script_arguments,
        tf_config=run.tf_config,
        strategy=strategy,
        rank=run.rank,
        ranks=run.beside,
        shares=_shares(arguments.share, len(members)),
        seed=arguments.seed,
        options=run_flags.options_of(arguments, RunOptions()),
        keep=str(Path(arguments.save).absolute()) if arguments.save and run.rank == 0 else "",
        checkpoints=checkpoints,
        resume=resume,
        peers={run.name(r): name for r, name in _names(run).items() if r != run.rank},
        meet_timeout_s=arguments.meet,
        launched=True,
        exchange=_keys(arguments.secret, run) if len(members) > 1 else None,
    )


def _names(run: Membership) -> dict[int, str]:
    return {rank: f"member {rank} at {address}" for rank, address in enumerate(run.addresses)}


def _shares(text: str, members: int) -> tuple[int, ...]:
    shares = run_flags.shares_by_rank(text) if text else (1,) * members
    check_shares(shares, members)
    return shares


def _keys(path: str | None, run: Membership) -> ExchangeKeys:
    try:
        secret = read_private(Path(path)).strip() if path else os.environ.get("TANDEM_SECRET", "").encode()
    except FileNotFoundError:
        secret = b""
    if len(secret) < LEAST_SECRET_BYTES:
        raise TandemError(
            code="no-secret",
            what="The members of this run have no shared secret.",
            fix="Make one (openssl rand -hex 32 > secret; chmod 600 secret) and name it: --secret FILE.",
        )
    pairs = [keys.derive(secret, run.run, rank) for rank in range(len(run.addresses))]
    certificates = tuple(pair.cert_der for pair in pairs)
    return ExchangeKeys(generation=0, certificates=certificates, private_key=pairs[run.rank].private_key)


async def _train(
    order: Train, place: Path, screen: Screen, interrupts: Interrupts, waits: MemberWaits
) -> tuple[Exit, Summary]:
    """The run's outcome, and a summary of how its result may differ from one machine's.

    A first SIGTERM or Ctrl-C stops at a step, with a checkpoint; a second one stops immediately.
    """
    told: dict[str, None] = {}
    summary = Summary()
    lost: list[Problem] = []
    ended: asyncio.Future[Exit] = asyncio.get_running_loop().create_future()

    def on_output(lines: LogLines) -> None:
        for line in plain_lines(lines.text, 1000):
            screen.say(line)

    def on_report(report: Report) -> None:
        nonlocal summary
        if isinstance(report, Progressed):
            summary = inexactly(summary, report.progress)
        elif isinstance(report, Said):
            screen.say(report.words)
            if report.difference:
                told[report.words] = None
        elif isinstance(report, StatusChanged):
            for word in waits.on_status(report.status):
                if isinstance(word, Problem):
                    lost.append(word)
                    trainer.stop(2)
                else:
                    screen.say(capitalised(word))

    trainer = TrainerProcess(
        order,
        log_path=place / log_name(order.task),
        on_report=on_report,
        on_output=on_output,
        on_exit=ended.set_result,
    )
    trainer.start()
    asked = asyncio.create_task(_stop(trainer, interrupts), name="member-stop")
    try:
        end = await ended
        if lost:
            end = Exit(reason="lost-peer", problem=lost[0])
        return end, replace(summary, told=tuple(told))
    finally:
        asked.cancel()


async def _stop(trainer: TrainerProcess, interrupts: Interrupts) -> None:
    await interrupts.wait_next()
    trainer.stop(0)
    await interrupts.wait_next()
    trainer.stop(2)
