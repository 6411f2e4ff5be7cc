"""From a run that ended early to the plan of the run that resumes it. Pure."""

from __future__ import annotations

from collections import Counter

from msgspec.structs import replace

from core.run.resume.fetch import FoundCheckpoint
from core.vocabulary.answers import RunDetails
from core.vocabulary.errors import TandemError
from core.vocabulary.ids import DeviceId
from core.vocabulary.manifest import Manifest
from core.vocabulary.paths import shown
from core.vocabulary.phases import Finished, ended
from core.vocabulary.plan import Plan, Role, RunSpec, ranks


def before(details: RunDetails) -> Plan:
    """The plan of the run that is to be resumed. Raises ``TandemError`` where it cannot be."""
    entry, plan = details.entry, details.plan
    if isinstance(entry.phase, Finished):
        raise TandemError(
            code="run-finished",
            what=f"The run {entry.run} came to its end: there is nothing left to go on with.",
            fix="Train again with tandem run; a script can load the model that was kept.",
        )
    if not ended(entry.phase):
        raise TandemError(code="busy", what="That run is under way.", fix="Stop it first, or let it go on.")
    if plan is None:
        raise TandemError(
            code="run-unknown",
            what=f"Of the run {entry.run}, its plan is not kept any more.",
            fix="Start the training anew.",
        )
    if plan.strategy == "own":
        raise TandemError(
            code="not-resumable",
            what=f"The script of the run {entry.run} brings a strategy of its own, and Tandem keeps "
            "checkpoints only of what it trains itself, by fit.",
            fix="Let the script keep checkpoints of its own (tf.train.Checkpoint), and run it again.",
        )
    return plan


def asked(spec: RunSpec, old: Plan, devices: tuple[DeviceId, ...]) -> RunSpec:
    """With the old run's seed and, where the same laptops take part, their tasks."""
    wanted = replace(spec, seed=old.seed, strategy=old.strategy)
    if spec.roles or {member.device for member in old.members} != set(devices):
        return wanted
    roles: dict[DeviceId, tuple[Role, ...]] = {
        device: tuple(task.role for task in old.tasks_of(device)) for device in devices
    }
    return replace(wanted, roles=roles)


def check_code(old: Manifest | None, new: Manifest, old_plan: Plan) -> tuple[str, ...]:
    """Raises ``TandemError`` where the script or a module of it is not as it was; remarks on what is unsure.

    Other files may have changed: what the script wrote beside itself is among them.
    """
    now = {file.path: file.sha256 for file in new.files}
    then = () if old is None else old.files
    code = [file for file in then if file.path.endswith(".py") or file.path == old_plan.script]
    changed = [file.path for file in code if now.get(file.path) != file.sha256]
    if new.script != old_plan.script:
        changed.insert(0, new.script)
    if changed:
        raise TandemError(
            code="script-changed",
            what=f"{shown(changed[0])} is not as it was when the run was started: going on would mix two "
            "trainings.",
            fix="Undo the change and try again, or start the training anew.",
        )
    if old is None and new.digest != old_plan.project:
        return (
            "Files of the project are not as they were when the run was started, and which ones is not kept "
            "here: look that the script is the same, or the result mixes two trainings.",
        )
    return ()


def none_found(old: Plan, absent: tuple[str, ...]) -> TandemError:
    """``absent``: names of laptops that took part and could not be asked."""
    if absent:
        return TandemError(
            code="no-checkpoint",
            what=f"No checkpoint of the run {old.run} is here, and {', '.join(absent)} could not be asked.",
            fix="Start Tandem there, wait until the laptops are connected, and try again.",
        )
    return TandemError(
        code="no-checkpoint",
        what=f"No laptop has a checkpoint of the run {old.run}. They are kept every minute and at epochs' "
        "ends of a fit; a loop of train_on_batch has none.",
        fix="Start the training anew.",
    )


def not_asked(absent: tuple[str, ...]) -> str:
    """``absent``: names of laptops that took part."""
    return f"{', '.join(absent)} could not be asked for a checkpoint: a newer one may lie there."


def left_aside(found: FoundCheckpoint, where: str, why: TandemError) -> str:
    return f"The checkpoint of step {found.moment.step} on {where} cannot be used. {why.problem.what}"


def taken(found: FoundCheckpoint, where: str) -> str:
    return f"Going on with that of step {found.moment.step} on {where}."


def continued(plan: Plan, spec: RunSpec, old: Plan, found: FoundCheckpoint) -> Plan:
    """``plan``, resuming from ``found``: the same laptops begin with the shares that they had then."""
    computing = ranks(plan)
    if (
        not spec.shares
        and computing == ranks(old)
        and len(computing) == len(found.shares)
        and any(found.shares)
        and all(0 <= share < 1 << 31 for share in found.shares)
    ):
        shares: Counter[DeviceId] = Counter()
        for device, share in zip(computing, found.shares, strict=True):
            shares[device] += share  # A laptop with several cards has as many ranks.
        # What computes nothing (ps, evaluator) has a share that counts nowhere.
        members = tuple(
            replace(member, share=shares.get(member.device, member.share)) for member in plan.members
        )
        plan = replace(plan, members=members, balance=old.balance)
    return replace(plan, resume=found.resumption)
