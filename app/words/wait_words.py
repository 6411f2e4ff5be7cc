"""The laptops that a run waits for, since when and why, and what happens if this one sleeps, in words. Pure;
shared by every display."""

from __future__ import annotations

from collections.abc import Mapping

from core.vocabulary import units
from core.vocabulary.events import WaitingChanged
from core.vocabulary.ids import DeviceId, short
from core.vocabulary.limits import SILENT_S
from core.vocabulary.phases import Stopping, Training
from core.vocabulary.state import Run, State
from core.vocabulary.text import capitalised, listed, plain
from core.vocabulary.waits import Activity, WaitsFor

_ACTIVITIES: dict[Activity, str] = {
    "exchange": "waiting for the others",
    "importing": "importing a module",
    "compiling": "compiling the model",
    "callback": "in a callback",
    "step": "computing a step",
    "script": "in its own code",
}
ASKS = "There has been no progress for a long time. The run keeps waiting unless you stop it."
GOES_ON = "The run continues."


def words(wait: WaitsFor, name: str) -> str:
    """``Waiting for Ben: the script there has been in a callback (train.py, line 12) for 40 s.``"""
    lasted = units.duration(wait.lasted_s)
    match wait.cause:
        case "away":
            since = (
                f"for {lasted}"
                if wait.since_s is None
                else f"since {units.moment(wait.since_s, '%H:%M')} ({lasted})"
            )
            left = "" if wait.left_s is None else units.duration(wait.left_s)
            return f"{name} has been away {since}.{f' The run waits for it, {left} more.' if left else ''}"
        case "stopped":
            return f"Waiting for {name}: its training process has been stopped for {lasted}."
        case "starting":
            return f"Waiting for {name}: TensorFlow has been loading there for {lasted}."
        case "wire":
            left = "" if wait.left_s is None else f", {units.duration(wait.left_s)} left"
            come, total = units.size(wait.bytes_come), units.size(wait.bytes_total)
            so_far = f" ({come} of {total}{left})" if wait.bytes_total else ""  # otherwise not announced yet
            return f"Waiting for {name}: its data has been in transit for {lasted}{so_far}."
        case "connection":
            return f"Waiting for {name}: no connection to its training process for {lasted}."
        case "silent":
            return f"Waiting for {name}: nothing received from its training process for {lasted}."
        case "script":
            if wait.held:
                return (
                    f"Waiting for {name}: its training process has reported nothing for {lasted}, using "
                    f"{wait.cores:.1f} processors. Native code may hold Python's interpreter."
                )
            doing = _ACTIVITIES[wait.activity] if wait.activity else "busy"
            at = f" ({plain(wait.where, 120)})" if wait.where else ""
            return f"Waiting for {name}: the script there has been {doing}{at} for {lasted}."


def brief(wait: WaitsFor) -> tuple[str, str]:
    """For a table: what the awaited laptop does, and for how long or how much of it."""
    lasted = f"for {units.duration(wait.lasted_s)}"
    match wait.cause:
        case "away":
            left = "" if wait.left_s is None else f", {units.duration(wait.left_s)} left"
            return "Away", f"{lasted}{left}"
        case "stopped":
            return "Process stopped", lasted
        case "starting":
            return "Starting TensorFlow", lasted
        case "wire":
            come = f"{units.size(wait.bytes_come)} of {units.size(wait.bytes_total)}"
            return "Sending its data", come if wait.bytes_total else lasted
        case "connection":
            return "No connection", lasted
        case "silent":
            return "Silent", lasted
        case "script" if wait.held:
            return "In native code", lasted
        case "script":
            doing = _ACTIVITIES[wait.activity] if wait.activity else "busy"
            return capitalised(doing), plain(wait.where, 80) or lasted


def lines(run: Run, names: Mapping[DeviceId, str]) -> list[str]:
    """All current wait messages: none if nobody is waited for."""
    if run.waiting is None:
        return []
    said = [words(wait, names.get(wait.device) or short(wait.device)) for wait in run.waiting.waits]
    return [*said, ASKS] if run.waiting.asks else said


def gist(event: WaitingChanged) -> tuple[object, ...]:
    """A key for comparison: who is waited for and why, without numbers. Empty: nobody."""
    if not event.waits:
        return ()
    return (*((wait.device, wait.cause, wait.activity, wait.where) for wait in event.waits), event.asks)


def if_lid_closes(run: Run, state: State, names: Mapping[DeviceId, str]) -> str:
    """``If you close the lid, this laptop sleeps. After 10 s Ben goes on without it; …``. ``""``: no battery,
    and so no lid, or this laptop does not train."""
    me = state.me
    has_lid = me is not None and me.reading is not None and me.reading.has_battery
    if me is None or not has_lid or me.device not in run.staying or run.over:
        return ""
    if isinstance(run.phase, Stopping):
        return ""
    return f"If you close the lid, this laptop sleeps. {_while_asleep(run, me.device, names)}"


def _while_asleep(run: Run, me: DeviceId, names: Mapping[DeviceId, str]) -> str:
    others = [names[device] for device in run.staying if device != me]
    if not others:
        return "The training pauses, and goes on once you open it."
    who, is_one, plan = listed(others), len(others) == 1, run.plan
    if not (plan.outlasts_losses and isinstance(run.phase, Training)):
        wait_s = SILENT_S + plan.away_s
        return f"{who} {'waits' if is_one else 'wait'} up to {units.duration(wait_s)}; then the run ends."
    after = f"After {units.duration(SILENT_S + plan.go_on_s)}"
    goes_on = f"{after} {who} {'goes' if is_one else 'go'} on without it"
    progress = run.members[run.chief.device].progress
    if progress is None or progress.epochs > 0:
        back = "takes the run over again" if plan.starter == me else "comes back by itself"
        return f"{goes_on}; once you open it, it {back}."
    if plan.starter == me:  # nobody stands in for it without a checkpoint
        return f"{after} the run ends on {who}: loops of train_on_batch have no checkpoints."
    return f"{goes_on}. It does not come back: loops of train_on_batch have no checkpoints."
