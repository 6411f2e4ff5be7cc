"""Makes the plan that resumes a run which ended early. Pure."""

from __future__ import annotations

from msgspec.structs import replace

from core.project.checkpoint_store import Exactness
from core.run.resume.fetch import FoundCheckpoint
from core.vocabulary.answers import RunDetails
from core.vocabulary.errors import TandemError
from core.vocabulary.ids import DeviceId
from core.vocabulary.manifest import Manifest
from core.vocabulary.paths import shown
from core.vocabulary.phases import Finished, Stopped, ended
from core.vocabulary.plan import Plan, Role, RunOwner, RunSpec, ranks
from core.vocabulary.text import listed


def plan_to_resume(details: RunDetails) -> Plan:
    """The plan of the run to resume. Raises ``TandemError`` where it cannot be resumed."""
    entry, plan = details.entry, details.plan
    if isinstance(entry.phase, Finished):
        raise TandemError(
            code="run-finished",
            what=f"The run {entry.run} has finished: there is nothing left to resume.",
            fix="Train again with tandem run; a script can load the saved model.",
        )
    if not ended(entry.phase):
        raise TandemError(code="busy", what="That run is under way.", fix="Stop it first, or let it go on.")
    if plan is None:
        raise TandemError(
            code="run-unknown",
            what=f"The plan of the run {entry.run} is not stored any more.",
            fix="Start the training again.",
        )
    if plan.strategy == "own":
        raise TandemError(
            code="not-resumable",
            what=f"The script of the run {entry.run} has its own strategy, and Tandem keeps checkpoints only "
            "of what it trains itself, by fit.",
            fix="Let the script save its own checkpoints (tf.train.Checkpoint), and run it again.",
        )
    return plan


def saw_the_end(details: RunDetails, me: DeviceId) -> bool:
    """Whether the run was stopped only to go on, and this laptop was in it up to that step.

    Security invariant: then its own checkpoint is as new as any, and no member brings in another state by
    leaving, returning, and reporting a newer one.
    """
    phase, plan = details.entry.phase, details.plan
    took_part = plan is not None and any(member.device == me for member in plan.members)
    return isinstance(phase, Stopped) and phase.goes_on and took_part and me not in details.left


def with_old_tasks(spec: RunSpec, old: Plan, devices: tuple[DeviceId, ...]) -> RunSpec:
    """``spec`` with the old run's seed and, where the same laptops take part, their tasks."""
    wanted = replace(spec, seed=old.seed, strategy=old.strategy)
    if spec.roles or {member.device for member in old.members} != set(devices):
        return wanted
    roles: dict[DeviceId, tuple[Role, ...]] = {
        device: tuple(task.role for task in old.tasks_of(device)) for device in devices
    }
    return replace(wanted, roles=roles)


def for_devices(spec: RunSpec, devices: tuple[DeviceId, ...], me: DeviceId) -> RunSpec:
    """``spec`` for exactly these laptops: drops options and shares of others."""
    others = tuple(device for device in devices if device != me)
    shares = spec.shares if spec.shares.keys() == set(devices) else {}
    return replace(
        spec,
        devices=others,
        solo=not others,
        roles={device: roles for device, roles in spec.roles.items() if device in devices},
        shares=shares,
        shares_total=spec.shares_total if shares else None,
        opens={device: opens for device, opens in spec.opens.items() if device in devices},
    )


def check_code(old: Manifest | None, new: Manifest, old_plan: Plan) -> tuple[str, ...]:
    """Raises ``TandemError`` where the script or one of its modules has changed; returns remarks on uncertain
    files.

    Other files may have changed: the script's own outputs are among them.
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
            what=f"{shown(changed[0])} has changed since the run was started: going on would mix two "
            "trainings.",
            fix="Undo the change and try again, or start the training again.",
        )
    if old is None and new.digest != old_plan.project:
        return (
            "Files of the project have changed since the run was started, and this laptop does not know "
            "which ones. Make sure that the script is the same: otherwise the result mixes two trainings.",
        )
    return ()


def none_found(old: Plan, absent: tuple[str, ...]) -> TandemError:
    """``absent``: names of members that could not be asked."""
    if absent:
        return TandemError(
            code="no-checkpoint",
            what=f"No checkpoint of the run {old.run} is here, and {', '.join(absent)} could not be asked.",
            fix="Start Tandem there, wait until the laptops are connected, and try again.",
        )
    return TandemError(
        code="no-checkpoint",
        what=f"No laptop has a checkpoint of the run {old.run}. The first is kept after 10 s of training, or "
        "at a stop; a loop of train_on_batch has none.",
        fix="Start the training again.",
    )


def no_project(old: Plan) -> TandemError:
    starter = next((each.name for each in old.members if each.device == old.starter), "the other laptop")
    return TandemError(
        code="no-project",
        what=f"The files of the run {old.run} are not kept here any more.",
        fix=f"Resume it on {starter}, where it was started.",
    )


def not_asked(absent: tuple[str, ...]) -> str:
    """``absent``: names of members."""
    return f"{', '.join(absent)} could not be asked for a checkpoint: there may be a newer one."


def left_aside(found: FoundCheckpoint, where: str, why: TandemError) -> str:
    return f"The checkpoint of step {found.moment.step} on {where} cannot be used. {why.problem.what}"


def unwritten(where: str, why: Exception) -> str:
    what = why.problem.what if isinstance(why, TandemError) else f"{why}"
    return f"The files that the script wrote on {where} did not come with the checkpoint. {what}"


def taken(found: FoundCheckpoint, where: str) -> str:
    return f"Going on with the checkpoint of step {found.moment.step} on {where}."


def going_on_with(back: tuple[str, ...], plan: Plan) -> str:
    """The remark on a run that goes on with laptops that were absent at its end."""
    assert plan.resume is not None
    return f"Going on with {listed(back)} from step {plan.resume.moment.step:,}."


def owner_of(plan: Plan) -> RunOwner:
    """The laptop whose run it is, even while another one stands in for it."""
    return plan.owner or RunOwner(device=plan.starter, run=plan.run)


def stood_in_for(old: Plan, me: DeviceId) -> RunOwner | None:
    """The owner for whom this laptop goes on with ``old`` automatically; None: the run is its own."""
    return None if old.owner is None and old.starter == me else owner_of(old)


def continued(
    plan: Plan,
    spec: RunSpec,
    old: Plan,
    found: FoundCheckpoint,
    back: tuple[str, ...] = (),
    owner: RunOwner | None = None,
    exactness: Exactness = Exactness(),  # noqa: B008 (frozen)
) -> Plan:
    """``plan``, resuming from ``found``. The same laptops keep the shares that the user fixed, or begin with
    those that followed their speeds. ``back``, ``owner``: as in ``Resumption``. ``exactness``: the
    checkpoint's."""
    computing = ranks(plan)
    if not spec.shares and computing == ranks(old):
        shares: dict[DeviceId, int] = {}
        if not old.balance:
            shares = {member.device: member.share for member in old.members}
        # Somebody without a share would hardly show its speed: then all begin evenly, and are measured.
        elif len(computing) == len(found.shares) and all(0 < share < 1 << 31 for share in found.shares):
            # A laptop with several cards has as many ranks.
            for device, share in zip(computing, found.shares, strict=True):
                shares[device] = shares.get(device, 0) + share
        members = tuple(
            replace(member, share=shares.get(member.device, member.share)) for member in plan.members
        )
        plan = replace(plan, members=members, balance=old.balance)
    met, bits = exactness.met_every, exactness.sent_bits
    resume = replace(found.resumption, back=back, owner=owner, met_every=met, sent_bits=bits)
    return replace(plan, resume=resume)
