"""Why a run failed, in words: which member, what, and how to fix it. A traceback is the detail."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from core.exchange import problems as exchange
from core.vocabulary import units
from core.vocabulary.errors import LEFT_RUN, Problem, TandemError
from core.vocabulary.ids import DeviceId
from core.vocabulary.laptops import gone
from core.vocabulary.limits import CONSENT_S, FINISH_S, OUTPUTS_S, RECEIVE_S, SILENT_S
from core.vocabulary.phases import ARGUMENTS_REFUSED, Exit, ExitReason
from core.vocabulary.plan import Plan
from core.vocabulary.text import listed, plain

CONSEQUENCES: frozenset[ExitReason] = frozenset({"lost-peer", "never-met"})
"""Exits that another member's end may have caused: wait for a better cause."""
OWN_FAULTS: frozenset[ExitReason] = frozenset({"script-error", "out-of-memory"})
"""Exits that no other member can have caused."""

OF_ALL = (exchange.MISMATCH, exchange.ENDED, ARGUMENTS_REFUSED)
"""Codes of problems that name every member concerned, or concern all of them."""

LINK_LOST = "its link was lost"
"""The reason for a member that is gone."""
_PORTS = "Allow TCP ports 20000–32000 in the laptops' firewalls; over TLS, one of two is enough."
_TAKE_PART_FIRST = "Say here whether this laptop takes part in it, and start yours again when it has ended."
_IN_WORDS: dict[ExitReason, tuple[str, str]] = {
    "script-error": ("The script failed.", "The log has its traceback."),
    "out-of-memory": ("The training ran out of memory.", "Use a smaller batch or model."),
    "lost-peer": (
        "The training lost its connection to another member.",
        "Check the network and train again.",
    ),
    "never-met": (
        "The trainers never reached each other.",
        f"{_PORTS} Then train again.",
    ),
    "killed": (
        "The training process was killed.",
        "If nobody did that, memory may have run out: close other programs, or use a smaller batch or model.",
    ),
    "stopped": (
        "The training was stopped from outside of Tandem.",
        "Train again, and use Stop to end it.",
    ),
}


def trainer_failed(plan: Plan, device: DeviceId, task: str, end: Exit) -> Problem:
    """The verdict of one trainer, with the name of its laptop where there are several."""
    problem = what_ended(end)
    if len(plan.members) == 1 or problem.code in OF_ALL:
        return problem
    where = plan.member(device).name
    if len(plan.tasks_of(device)) > 1:
        where += f" ({task})"
    return replace(problem, what=f"On {where}: {problem.what}")


def what_ended(end: Exit) -> Problem:
    """Why a trainer did not finish, without the name of its laptop."""
    what, fix = _IN_WORDS.get(end.reason, ("The training ended too early.", "The log says more."))
    return end.problem or Problem(code=end.reason, what=what, fix=fix)


def run_under_way() -> Problem:
    return Problem(
        code="busy", what="This laptop has a run under way.", fix="Wait until it has ended, or stop it first."
    )


def no_run() -> Problem:
    return Problem(
        code="no-run", what="No run is under way here.", fix="Start one with Train, or with tandem run."
    )


def request_gone() -> Problem:
    return Problem(
        code="no-such-question",
        what="That request is not open any more.",
        fix="The other laptop can start the run again.",
    )


def not_asked() -> Problem:
    return Problem(
        code="no-such-question",
        what="This laptop is not asking whether that run should go on waiting.",
        fix="Answer on the laptop that started the run, while it asks.",
    )


def no_consent(names: Sequence[str]) -> Problem:
    who = listed(names)
    return Problem(
        code="no-consent",
        what=f"Nobody on {who} answered within {units.duration(CONSENT_S)} whether the script may run there.",
        fix=f"Press Allow on {who}, or choose Always allow there, and train again.",
    )


def declined(name: str, problem: Problem) -> Problem:
    return replace(problem, what=f"{name} does not take part: {problem.what}")


def refused_by_user() -> Problem:
    """A member's answer when its user said no."""
    return Problem(
        code="consent-refused",
        what="its user did not allow the script to run there.",
        fix="Talk to that person, or train without that laptop.",
    )


def busy() -> Problem:
    """A member's answer when it already has a run."""
    return Problem(
        code="device-busy",
        what="it is busy with another run.",
        fix="Wait until that one has ended, or stop it there.",
    )


def crossed(name: str) -> Problem:
    """For a starter whose run gives way to the one that was started on ``name``."""
    return Problem(
        code="train-crossed",
        what=f"Train was pressed on {name} at the same moment, and that run goes first.",
        fix=_TAKE_PART_FIRST,
    )


def asked_first(name: str) -> Problem:
    """For a user who presses Train while another laptop's request is open here."""
    return Problem(
        code="train-crossed",
        what=f"{name} has just asked this laptop to take part in a run, and that run goes first.",
        fix=_TAKE_PART_FIRST,
    )


def asked_too_often(left_s: float) -> Problem:
    return Problem(
        code="asked-too-often",
        what="its user was asked three times in a row and did not say yes.",
        fix=f"Talk to them, and train again in {left_s:.0f} s.",
    )


def lies_elsewhere() -> Problem:
    return Problem(
        code="lies-elsewhere",
        what="A folder that the script asked for was replaced by a link since its user was asked.",
    )


def known_run() -> Problem:
    """A member's answer to a known id: ids are never used twice."""
    return Problem(
        code="run-known",
        what="it has seen this run before.",
        fix="Start the run again.",
    )


def not_prepared(names: Sequence[str]) -> Problem:
    who = listed(names)
    return Problem(
        code="not-prepared",
        what=f"{who} did not get ready: no sign of the project's files for {units.duration(RECEIVE_S)}.",
        fix="Check the network between the laptops and the disk there, and train again.",
    )


def not_started(names: Sequence[str], ports: Sequence[int], waited_s: float) -> Problem:
    who = listed(names)
    at = f" (TCP port {listed([str(port) for port in ports])})" if ports else ""
    return Problem(
        code="not-started",
        what=f"The training on {who}{at} did not start within {units.duration(waited_s)}.",
        fix=f"Look at the log of {who}. If the laptops cannot reach each other: {_PORTS}",
    )


def starter_of(plan: Plan) -> str:
    """The starter's name. The starter need not be a member of the run."""
    names = (member.name for member in plan.members if member.device == plan.starter)
    return next(names, "the laptop that started the run")


def lost_device(plan: Plan, device: DeviceId, problem: Problem, *, back: bool = False) -> Problem:
    """The problem that every member sees; ``problem`` is in the words of the starter's laptop. ``back``: it
    is there again, but its trainers' connections are lost."""
    name = plan.member(device).name
    if problem.code == "link-slept":
        return why_lost(plan, problem)
    return Problem(
        code="device-lost",
        what=f"{name} was lost during the run: {problem.what}",
        fix=f"{name} is back, but TensorFlow does not reopen connections that were cut. Train again."
        if back
        else f"Make sure that {name} is on, awake and connected, and train again.",
        detail=problem.detail,
    )


def why_lost(plan: Plan, problem: Problem) -> Problem:
    """A link's problem, in words that hold on every laptop."""
    if problem.code == "link-slept":
        return replace(problem, what=f"On {starter_of(plan)}: {problem.what}")
    return problem


def left(name: str, why: Problem, others: Sequence[str] = (), step: int = 0) -> str:
    """``ben was lost at step 812: The trainer was killed. anna goes on alone.`` No end without ``others``."""
    said, where, since = plain(why.what, 300), f"step {step:,}" if step else "", ""
    if why.code == LEFT_RUN:
        since = where and f" from {where}"
    else:
        said = f"{name} {'left' if gone(why) == 'left' else 'was lost'}{where and f' at {where}'}: {said}"
    go_on = f" {listed(others)} {'goes on alone' if len(others) == 1 else 'go on'}{since}."
    return said + go_on if others else said


def lost_starter(name: str, problem: Problem) -> Problem:
    if problem.code == "link-slept":
        return problem
    return Problem(
        code="starter-lost",
        what=f"{name}, which started the run, was lost: {problem.what} The training here has ended.",
        fix=f"Make sure that {name} is on, awake and connected, and start the run there again.",
        detail=problem.detail,
    )


def back(name: str, away_s: float) -> str:
    return f"{name} was away for {units.duration(away_s)}, and is back."


def away_too_long(name: str, limit_s: float, *, began: bool = True) -> Problem:
    """``limit_s``: since its silence was noticed. ``began``: there may be something to resume."""
    then = "then resume the run" if began else "then train again"
    return Problem(
        code="device-away",
        what=f"{name} was silent for {units.duration(SILENT_S + limit_s)}, and this run waits no longer.",
        fix=f"Make sure that {name} is on, awake and connected; {then}. Use --wait-for-away to wait longer.",
    )


def part_gone() -> Problem:
    """A member's message to a starter that it waited for in vain."""
    return Problem(
        code="part-gone",
        what="it has left the run; its Tandem says why.",
        fix="Resume the run.",
    )


def never_launched(name: str) -> Problem:
    return Problem(
        code="never-launched",
        what=f"{name} asked for this run and then did not go on with it.",
        fix=f"Look at the run on {name}, and start it there again.",
    )


def starter_silent(name: str) -> Problem:
    return Problem(
        code="starter-silent",
        what=f"{name}, which started the run, did not say how it ended.",
        fix=f"Look at the run on {name}.",
    )


def still_running(names: Sequence[str]) -> Problem:
    who = listed(names)
    return Problem(
        code="still-running",
        what=f"The script still runs on {who}, {units.duration(FINISH_S)} after it ended on another member.",
        fix="Make sure that the script does the same on every laptop, and does not wait for a key or a file.",
    )


def _kept_on(name: str) -> str:
    return f"{name} keeps it as long as its settings say (30 days by default)."


def outputs_missing(name: str, problem: Problem | None = None) -> Problem:
    why = problem.what if problem else f"nothing came for {units.duration(OUTPUTS_S)}."
    return Problem(
        code="outputs-missing",
        what=f"The training finished, but the files that the script wrote on {name} did not arrive: {why}",
        fix=f"On {name}, look into the run's folder outputs. {_kept_on(name)}",
        detail=problem.detail if problem else "",
    )


def model_too_large(name: str) -> Problem:
    return Problem(
        code="outputs-left",
        what=f"The trained model is too large to be brought back: it stays on {name}.",
        fix=f"On {name}, open this run under Runs: it is in the run's folder outputs. {_kept_on(name)}",
    )


def model_unmoved(name: str, why: OSError) -> Problem:
    return Problem(
        code="outputs-left",
        what=f"The trained model cannot be brought back ({why.strerror or why}): it stays on {name}.",
        fix=f"On {name}, look into the run's folder: it is in kept or in outputs. {_kept_on(name)}",
    )


def unknown_exchange(name: str) -> Problem:
    """A member's answer to a newer Tandem's plan."""
    return Problem(
        code="exchange-unknown",
        what=f"its Tandem does not support the exchange {plain(name, 40)!r}.",
        fix="Update Tandem there.",
    )


def by_tensorflow() -> TandemError:
    """The refusal of a shared run that an older version made or requested."""
    return TandemError(
        code="exchange-tensorflow",
        what="This run would use TensorFlow's collectives (exchange: tensorflow), whose port is open to the "
        "whole network. Tandem no longer shares runs that way.",
        fix="Update Tandem on all laptops and start the script again (tandem run): they meet over TLS.",
    )


def not_sealed(names: Sequence[str], here: bool) -> TandemError:
    """``names``: laptops that cannot seal TensorFlow's port; ``here``: this one is among them."""
    return TandemError(
        code="not-sealed",
        what="The script's own strategy uses TensorFlow's port, which would be open to the whole network on "
        f"{listed(names)}: it cannot be sealed there.",
        fix=("`tandem doctor` says why not" + (" here" if here else " there") + ", and how to fix it. ")
        + "Model.fit and MirroredStrategy need no seal.",
    )


def bad_message(name: str) -> Problem:
    return Problem(
        code="broken-talk",
        what=f"{name} sent a message that does not fit the run.",
        fix="Update Tandem on both laptops and train again.",
    )


def work_broke(name: str, error: BaseException) -> Problem:
    """``name``: the work that failed."""
    if isinstance(error, TandemError):
        return error.problem
    return Problem(
        code="run-work-broke",
        what=f"Something went wrong inside Tandem ({name}).",
        fix="Please save the diagnostics and report it.",
        detail=repr(error),
    )


def stopped_by(name: str) -> Problem:
    return Problem(code="stopped", what=f"The run was stopped on {name}.")


def closed(name: str) -> Problem:
    return Problem(code="closed", what=f"Tandem was closed on {name}.", fix="Start it there and train again.")


def nothing_shared() -> str:
    return (
        "Nothing was shared between the laptops: the script trained neither with Keras 3's fit nor in a "
        "strategy of its own, so each laptop did the same work alone."
    )


def unequal_weights() -> Problem:
    return Problem(
        code="members-differ",
        what="The members ended with different weights, so this is not the result of one machine; the "
        "chief's are kept.",
        fix="Look in the script for what is not the same on all laptops (a clock, an unseeded generator, the "
        "laptop's name). If you find nothing, please report it with the log.",
    )


def slow_to_stop(names: Sequence[str], waited_s: float, force: int) -> str:
    step = "terminated" if force == 1 else "killed"
    return f"{listed(names)} did not end within {units.duration(waited_s)}; the training there is now {step}."


def ended_by_force(names: Sequence[str]) -> str:
    return f"{listed(names)} did not say that the training there has ended."
