"""From what a user asks for to a plan: reads the script, chooses devices, roles and addresses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec.structs import replace

from core.cluster.make_plan import make_plan
from core.cluster.proposal import propose_roles
from core.cluster.tf_config import check, is_loopback, tf_config
from core.project.find import SeveralScripts, find_script
from core.project.needs import Needs
from core.project.only_here import find_only_here
from core.project.scan import scan_project
from core.project.script import ScriptReport, analyse
from core.project.store import ProjectStore
from core.project.texts import find_unseen, read_texts
from core.run import problems
from core.run.context import RunLinks
from core.vocabulary.answers import PlanMade, ScriptRead, ScriptsFound
from core.vocabulary.errors import Problem, TandemError
from core.vocabulary.ids import DeviceId, ProjectId, short
from core.vocabulary.manifest import Difference, Manifest, code_digest, differences
from core.vocabulary.plan import Member, Plan, Role, RunSpec, StrategyKind
from core.vocabulary.readings import Hardware
from core.vocabulary.state import Device, State
from core.vocabulary.versions import EXCHANGE


class LocalProject(msgspec.Struct, frozen=True, kw_only=True):
    """A project as it lies here, and what reading its script found."""

    folder: str
    manifest: Manifest
    strategy: StrategyKind
    parameter_server: bool
    brings_strategy: bool = False
    """It opens a strategy of its own, which on one laptop alone is all there is."""
    mirrored_loop: bool = False
    """It uses MirroredStrategy by hand, whose replicas are then the members."""
    needs: Needs = Needs()
    warnings: tuple[str, ...] = ()
    texts: dict[str, bytes] = {}
    """What the other users can look at before their yes, by path."""


def read_script(path: Path) -> ScriptRead | ScriptsFound:
    """What a screen shows of a script before it is run. Blocks. Raises ``TandemError``."""
    try:
        script = find_script(path.expanduser())
    except SeveralScripts as several:
        return ScriptsFound(folder=str(several.folder), scripts=several.scripts, problem=several.problem)
    report = analyse(script)
    project = scan_project(Path(report.folder) / report.script)
    problems = (report.problem,) if report.problem else ()
    of_others = find_only_here(Path(report.folder) / report.script, project.manifest)
    of_others += find_unseen(project.manifest)
    return ScriptRead(
        script=report.script,
        folder=report.folder,
        kind="managed" if report.fits_in_own_strategy else report.kind,
        strategies=report.strategies,
        mirrored_loop=report.loops_in_mirrored_strategy,
        mistakes=(*problems, *(mistake.problem for mistake in (*report.mistakes, *of_others))),
        files=project.manifest.files,
        skipped=(*(f"{entry.path}: {entry.why}" for entry in project.skipped), *project.ignored),
        total_bytes=project.manifest.total_bytes,
        code=code_digest(project.manifest),
    )


def read_project(spec: RunSpec) -> LocalProject:
    """Read and hash everything that travels. Blocks. Raises ``TandemError``."""
    report = analyse(find_script(Path(spec.script).expanduser()))
    project = scan_project(Path(report.folder) / report.script, arguments=spec.arguments)
    return LocalProject(
        folder=project.folder,
        manifest=project.manifest,
        strategy=spec.strategy or _strategy(report),
        parameter_server=any("ParameterServer" in name for name in report.strategies),
        brings_strategy=report.kind == "own",
        mirrored_loop=report.loops_in_mirrored_strategy,
        needs=report.needs,
        warnings=_warnings(report, spec, project.manifest),
        texts={} if spec.solo else read_texts(Path(project.folder), project.manifest),
    )


def _strategy(report: ScriptReport) -> StrategyKind:
    return "own" if report.kind == "own" and not report.fits_in_own_strategy else "managed"


def _equal_shares(report: ScriptReport) -> Problem:
    return Problem(
        code="equal-shares",
        what=f"{report.script} trains in a loop of its own, whose replicas have equal parts of each batch: "
        "the shares that were asked for are left out.",
        fix="Train by model.fit to share batches by the laptops' speeds.",
    )


def _warnings(report: ScriptReport, spec: RunSpec, manifest: Manifest) -> tuple[str, ...]:
    problems = [mistake.problem for mistake in report.mistakes]
    if not spec.solo:
        found = find_only_here(Path(report.folder) / report.script, manifest)
        problems += [mistake.problem for mistake in (*found, *find_unseen(manifest))]
    if report.problem is not None and spec.strategy is None and not spec.solo:
        problems.insert(0, report.problem)
    if _strategy(report) == "own" and spec.shares:
        problems.append(_equal_shares(report))
    return tuple(str(problem) for problem in problems)


def make(
    spec: RunSpec,
    devices: tuple[DeviceId, ...],
    project: LocalProject,
    me: DeviceId,
    state: State,
    links: RunLinks,
) -> Plan:
    """Raises ``TandemError`` for roles, shares, an exchange or addresses that cannot be."""
    names = names_of(me, state)
    strategy = project.strategy
    if len(devices) == 1 and not spec.roles and not spec.strategy and project.brings_strategy:
        strategy = "own"  # with all cards of this laptop, as the script says
    roles = propose_roles(
        devices,
        fixed=spec.roles,
        hardware=hardware_of(me, state),
        strategy=strategy,
        parameter_server=project.parameter_server,
        names=names,
    )
    hosts = choose_hosts(tuple(roles), me, links.peer_host, links.own_host, names)
    if not hosts:
        # Several tasks on one laptop talk over its loopback.
        hosts = dict.fromkeys(roles, "127.0.0.1")
    plan = make_plan(
        spec,
        starter=me,
        project=project.manifest.digest,
        script=project.manifest.script,
        strategy=strategy,
        mirrored_loop=project.mirrored_loop,
        roles=roles,
        names=names,
        hosts=hosts,
        seals=not (unsealed := _unsealed(roles, spec, me, state)),
    )
    check(plan)
    _check_exchange(plan, state)
    if plan.opens_port and not (spec.open_port or spec.exchange == "tensorflow"):
        called = [names[device] for device in unsealed]
        if not _unsealed(roles, replace(spec, downloads=True), me, state):
            raise problems.not_kept_in(called)
        raise problems.not_sealed(called, me in unsealed)
    code = code_digest(project.manifest)
    accepted = state.me is not None and code in state.me.settings.accepted
    return replace(plan, code=code, accept_differences=plan.accept_differences or accepted)


def _unsealed(devices: Iterable[DeviceId], spec: RunSpec, me: DeviceId, state: State) -> tuple[DeviceId, ...]:
    """Where TensorFlow's port would be open. Only a network of its own keeps a script from the laptop's."""
    enough = ("namespace", "loopback") if spec.downloads else ("namespace",)
    versions = {device: known.versions for device, known in state.devices.items()}
    if state.me is not None:
        versions[me] = state.me.versions
    ways = {device: told.seal for device, told in versions.items() if told is not None}
    return tuple(device for device in devices if ways.get(device) not in enough)


def _check_exchange(plan: Plan, state: State) -> None:
    if plan.exchange != "tls":
        return
    for member in plan.members:
        known = state.devices.get(member.device)
        if known and known.versions and known.versions.exchange != EXCHANGE:
            raise TandemError(
                code="exchange-unlike",
                what=f"Tandem on {member.name} cannot meet others over TLS as Tandem here does "
                f"(version {known.versions.exchange} there, {EXCHANGE} here).",
                fix="Update Tandem on both laptops, or train with --exchange tensorflow.",
            )


def running_the_script(plan: Plan, project: LocalProject) -> tuple[Member, ...]:
    """Where parameter servers serve, the chief alone runs the script, and whoever evaluates."""
    serving = {Role.WORKER, Role.PS} if project.parameter_server else set()
    running = {task.device for task in plan.tasks if task.role not in serving}
    return tuple(member for member in plan.members if member.device in running)


def shown(plan: Plan, warnings: tuple[Problem, ...] = ()) -> PlanMade:
    """With the ports as they will be asked for."""
    texts = {f"{task.device}/{task.name}": tf_config(plan, task) for task in plan.tasks if not plan.solo}
    return PlanMade(plan=plan, tf_configs=texts, warnings=warnings)


def since_allowed(
    store: ProjectStore, approved: Iterable[ProjectId], manifest: Manifest
) -> dict[str, Difference] | None:
    """How a project differs from the newest that was allowed with a script of this name; None: none was.

    Blocks.
    """
    manifests = (store.manifest(digest) for digest in approved)
    before = next((each for each in manifests if each is not None and each.script == manifest.script), None)
    return None if before is None else differences(before, manifest)


def choose_devices(spec: RunSpec, me: DeviceId, state: State) -> tuple[DeviceId, ...]:
    """This device first, then those asked for, or every paired one that is here and fits.

    Raises ``TandemError`` for an asked-for device that is unknown, not paired, not here, busy or unlike.
    """
    if spec.solo:
        return (me,)
    if not spec.devices:
        fit = (device.device for device in state.devices.values() if _why_not(device) is None)
        return (me, *fit)
    others = [device for device in dict.fromkeys(spec.devices) if device != me]
    for device in others:
        known = state.devices.get(device)
        if known is None:
            raise TandemError(
                code="device-unknown",
                what=f"No device {short(device)} is known here.",
                fix="Look at the list of devices (tandem devices) and pair it first.",
            )
        if error := _why_not(known):
            raise error
    return (me, *others)


def who_is_missing(spec: RunSpec, devices: Sequence[DeviceId], state: State) -> tuple[str, ...]:
    """A sentence for each paired device that a run for whoever is there goes without."""
    if spec.solo or spec.devices:
        return ()
    left = [device for device in state.devices.values() if device.paired and device.device not in devices]
    return tuple(error.what for device in left if (error := _why_not(device)) is not None)


def check_company(spec: RunSpec, devices: Sequence[DeviceId], state: State) -> None:
    """Raises ``TandemError`` where a run that was meant for several laptops would be one alone."""
    missing = who_is_missing(spec, devices, state)
    if len(devices) == 1 and missing:
        raise TandemError(
            code="would-be-alone",
            what=f"No other laptop can take part in this run. {' '.join(missing)}",
            fix="See that Tandem runs there and is free, and train again. To train on this laptop alone, say "
            f"--solo{_without_roles(spec, devices)}.",
        )


def _without_roles(spec: RunSpec, devices: Sequence[DeviceId]) -> str:
    return "" if spec.roles.keys() <= set(devices) else ", and give the others no --role"


def no_shares(spec: RunSpec, plan: Plan) -> tuple[str, ...]:
    """What is said where shares were asked for, and there is nobody to share with."""
    if not spec.shares or len(plan.members) > 1:
        return ()
    return ("One laptop alone computes all of each batch: the shares that were asked for are left out.",)


def _why_not(device: Device) -> TandemError | None:
    name = device.shown_name
    if not device.paired:
        return TandemError(
            code="device-not-paired",
            what=f"{name} is not paired with this laptop.",
            fix="Pair it first: both people compare the same six digits.",
        )
    if not device.linked:
        return TandemError(
            code="device-offline",
            what=f"{name} is not connected" + (f": {device.problem.what}" if device.problem else "."),
            fix=f"See that {name} is on, awake and in the network, with Tandem running.",
        )
    if device.problem is not None:
        return TandemError.of(device.problem)
    if device.busy:
        return TandemError(
            code="device-busy",
            what=f"{name} is busy with another run.",
            fix="Wait until that one has ended, or stop it there.",
        )
    return None


def names_of(me: DeviceId, state: State) -> dict[DeviceId, str]:
    """How each device is called here; this laptop by its own name."""
    names = {device.device: device.shown_name for device in state.devices.values()}
    return {**names, me: state.me.name if state.me else short(me)}


def hardware_of(me: DeviceId, state: State) -> dict[DeviceId, Hardware]:
    known = {device.device: device.hardware for device in state.devices.values() if device.hardware}
    return {**known, me: state.me.hardware} if state.me else known


def choose_hosts(
    devices: Sequence[DeviceId],
    me: DeviceId,
    peer_host: Callable[[DeviceId], str],
    own_host: Callable[[DeviceId], str],
    names: Mapping[DeviceId, str],
) -> dict[DeviceId, str]:
    """Where each device's tasks are reached: as its link reaches it. One device alone needs none.

    Another node on this very machine is linked over loopback; where others are elsewhere, it is reached at
    this machine's address. Raises ``TandemError`` for a device whose link went away.
    """
    others = [device for device in devices if device != me]
    if len(devices) < 2:
        return {}
    hosts = {device: peer_host(device) for device in others}
    for device, host in hosts.items():
        if not host:
            raise TandemError(
                code="device-offline",
                what=f"{names.get(device) or short(device)} is not connected any more.",
                fix="See that it is on, awake and in the network, and train again.",
            )
    mine = [own_host(device) for device in others]
    outside = [host for host in mine if host and not is_loopback(host)]
    own = (outside or mine)[0]
    if outside:
        hosts = {device: own if is_loopback(host) else host for device, host in hosts.items()}
    return {**hosts, me: own} if me in devices else hosts
