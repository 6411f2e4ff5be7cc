"""Turns a user's request into a plan: reads the script, chooses devices, roles and addresses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec.structs import replace

from core.cluster.make_plan import make_plan, propose_roles
from core.cluster.tf_config import check, is_loopback, tf_config
from core.project.data import LocalData, left_behind, read_data, read_kept, too_many_data
from core.project.files import UNWATCHED, ReadMeter
from core.project.only_here import find_only_here
from core.project.scan import scan_project
from core.project.store import ProjectStore
from core.project.texts import find_unseen, read_texts
from core.run import abilities, problems
from core.run.context import RunLinks
from core.script.analysis import ScriptReport, analyse
from core.script.downloads import kept_downloads
from core.script.find import SeveralScripts, find_script
from core.script.imports import read_sources
from core.script.mistakes import KERAS_TUNER, UNKEPT
from core.script.needs import Needs
from core.vocabulary import wire
from core.vocabulary.answers import PlanMade, ScriptRead, ScriptsFound
from core.vocabulary.data import MOST as MOST_DATA
from core.vocabulary.data import check_folders
from core.vocabulary.errors import Problem, TandemError
from core.vocabulary.ids import DeviceId, ProjectId, short
from core.vocabulary.manifest import Difference, Listing, Manifest, code_digest, differences, listing_of
from core.vocabulary.plan import Member, Plan, Role, RunSpec, StrategyKind
from core.vocabulary.state import State
from core.walls.places import KERAS, keras_home


class LocalProject(msgspec.Struct, frozen=True, kw_only=True):
    """A project on this laptop's disk, and the results of analysing its script."""

    folder: str
    manifest: Manifest
    strategy: StrategyKind
    parameter_server: bool
    brings_strategy: bool = False
    """The script opens a strategy of its own, which a single laptop runs unchanged."""
    mirrored_loop: bool = False
    """The script has its own loop over a mirrored strategy, whose replicas are then the members."""
    needs: Needs = Needs()
    warnings: tuple[str, ...] = ()
    listing: Listing | None = None
    """Not None if the manifest is too long for a message."""
    texts: dict[str, bytes] = {}
    """Files that the other users can read before they answer, by path."""
    data: tuple[LocalData, ...] = ()
    """Files outside the project that the script reads."""

    @property
    def source(self) -> str:
        """The script's path here."""
        return str(Path(self.folder) / self.manifest.script)


def read_script(
    path: Path, hashes: Path | None = None, meter: ReadMeter = UNWATCHED
) -> ScriptRead | ScriptsFound:
    """Analyse a script for a screen, before it is run. Blocks. Raises ``TandemError``."""
    try:
        script = find_script(path.expanduser())
    except SeveralScripts as several:
        return ScriptsFound(folder=str(several.folder), scripts=several.scripts, problem=several.problem)
    report = analyse(script)
    project = scan_project(Path(report.folder) / report.script, hashes=hashes, meter=meter)
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
        options=report.options,
        total_bytes=project.manifest.total_bytes,
        code=code_digest(project.manifest),
    )


def read_project(
    spec: RunSpec,
    hashes: Path | None = None,
    found: Sequence[LocalData] = (),
    meter: ReadMeter = UNWATCHED,
) -> LocalProject:
    """Read everything that travels; ``hashes`` as in ``scan_project``. Blocks. Raises ``TandemError``.

    ``found``: data of a run that another laptop began.
    """
    check_folders(spec.data)
    report = analyse(find_script(Path(spec.script).expanduser()))
    script = Path(report.folder) / report.script
    project = scan_project(script, arguments=spec.arguments, hashes=hashes, meter=meter)
    data = [*found, *([] if spec.solo else _read_data(script, spec, hashes, meter))]
    beyond = [each for each in data[MOST_DATA:] if each.data.kept_by_keras]
    data = data[: len(data) - len(beyond)]
    return LocalProject(
        folder=project.folder,
        manifest=project.manifest,
        listing=listing_of(project.manifest),
        strategy=spec.strategy or _strategy(report),
        parameter_server=any("ParameterServer" in name for name in report.strategies),
        brings_strategy=report.kind == "own",
        mirrored_loop=report.loops_in_mirrored_strategy,
        needs=report.needs,
        warnings=_warnings(report, spec, project.manifest, data)
        + tuple(str(too_many_data(each)) for each in beyond),
        data=tuple(data),
        texts={} if spec.solo else read_texts(Path(project.folder), project.manifest),
    )


def _read_data(script: Path, spec: RunSpec, hashes: Path | None, meter: ReadMeter) -> list[LocalData]:
    """Read the data that the user named, and what Keras has downloaded for this script."""
    home = Path.home()
    named = [read_data(name, Path(path), home, hashes, meter) for name, path in spec.data.items()]
    kept = kept_downloads(read_sources(script).modules)
    keras = Path(keras_home() or home / KERAS)
    return named + read_kept(kept, keras, hashes, meter)


def with_files_of(project: LocalProject, then: Manifest | None) -> LocalProject:
    """The project with the files that a run began with, if all of them are unchanged: outputs that the script
    has since written beside itself raise no question, and an earlier permission still holds."""
    now = {file.path: file.sha256 for file in project.manifest.files}
    if then is None or any(now.get(file.path) != file.sha256 for file in then.files):
        return project
    texts = read_texts(Path(project.folder), then) if project.texts else {}
    return replace(project, manifest=then, listing=listing_of(then), texts=texts)


def _strategy(report: ScriptReport) -> StrategyKind:
    return "own" if report.kind == "own" and not report.fits_in_own_strategy else "managed"


def _equal_shares(report: ScriptReport) -> Problem:
    return Problem(
        code="equal-shares",
        what=f"{report.script} has its own training loop, whose replicas get equal parts of each batch: the "
        "requested shares are ignored.",
        fix="Train with model.fit to share batches by the laptops' speeds.",
    )


def _met_in_every_step(report: ScriptReport) -> Problem:
    return Problem(
        code="sync-exact",
        what=f"{report.script} has its own training loop, whose laptops meet in every step: --sync is "
        "ignored.",
        fix="Train with model.fit to meet rarely.",
    )


def _warnings(
    report: ScriptReport, spec: RunSpec, manifest: Manifest, data: Sequence[LocalData]
) -> tuple[str, ...]:
    irrelevant = (KERAS_TUNER, UNKEPT) if spec.solo else ()
    problems = [each.problem for each in report.mistakes if each.code not in irrelevant]
    if not spec.solo:
        travels = [path for each in data for path in each.data.spellings]
        found = find_only_here(Path(report.folder) / report.script, manifest, travels)
        problems += [mistake.problem for mistake in (*found, *find_unseen(manifest))]
        problems += [left_behind(each) for each in data if each.skipped]
    if report.problem is not None and spec.strategy is None and not spec.solo:
        problems.insert(0, report.problem)
    if _strategy(report) == "own" and spec.shares:
        problems.append(_equal_shares(report))
    if _strategy(report) == "own" and spec.sync != "exact" and not spec.solo:
        problems.append(_met_in_every_step(report))
    return tuple(str(problem) for problem in problems)


def make(
    spec: RunSpec,
    devices: tuple[DeviceId, ...],
    project: LocalProject,
    me: DeviceId,
    state: State,
    links: RunLinks,
) -> Plan:
    """Raises ``TandemError`` for impossible roles, shares or addresses, or a missing seal."""
    names = names_of(me, state)
    strategy = project.strategy
    taking = [spec.roles.get(device) for device in devices if Role.NONE not in spec.roles.get(device, ())]
    if taking == [None] and not spec.strategy and project.brings_strategy:
        strategy = "own"  # uses all GPUs of the one laptop, as the script asks
    roles = propose_roles(
        devices,
        fixed=spec.roles,
        strategy=strategy,
        parameter_server=project.parameter_server,
        names=names,
    )
    hosts = choose_hosts(tuple(roles), me, links.peer_host, links.own_host, names)
    if not hosts:
        # Several tasks on one laptop use its loopback.
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
    )
    plan = replace(plan, data=tuple(each.data for each in project.data))
    plan = _introducing(plan, links)
    check(plan)
    _check_bounds(plan)
    if spec.exchange == "tensorflow" and not plan.solo:
        raise problems.by_tensorflow()
    if plan.exchange == "sealed" and (unsealed := _unsealed(roles, me, state)):
        raise problems.not_sealed([names[device] for device in unsealed], me in unsealed)
    code = code_digest(project.manifest)
    accepted = state.me is not None and code in state.me.settings.accepted
    return replace(plan, code=code, accept_differences=plan.accept_differences or accepted)


def _introducing(plan: Plan, links: RunLinks) -> Plan:
    """Add the nodes of all members but the starter, if two or more may have to go on without it."""
    if not plan.outlasts_losses or len(plan.members) < 3:
        return plan
    pins = (links.node_pin(member.device) for member in plan.members)  # the starter has no link to itself
    members = (replace(member, node=pin) for member, pin in zip(plan.members, pins, strict=True))
    return replace(plan, members=tuple(members))


def _check_bounds(plan: Plan) -> None:
    """Refuse here what the other laptops would refuse to read."""
    try:
        wire.from_msgpack(wire.to_msgpack(plan), Plan)
    except msgspec.ValidationError as error:
        raise TandemError(
            code="plan-too-large",
            what="This run has too many tasks, or its arguments are too many or too long, for a message.",
            fix="Put what the script needs into a file of the project, or let fewer tasks take part.",
            detail=str(error),
        ) from error


def _unsealed(devices: Iterable[DeviceId], me: DeviceId, state: State) -> tuple[DeviceId, ...]:
    """Devices where TensorFlow's port would be open."""
    versions = {device: known.versions for device, known in state.devices.items()}
    if state.me is not None:
        versions[me] = state.me.versions
    ways = {device: told.seal for device, told in versions.items() if told is not None}
    return tuple(device for device in devices if ways.get(device) != "namespace")


def running_the_script(plan: Plan, project: LocalProject) -> tuple[Member, ...]:
    """The members that run the script: with parameter servers, only the chief and evaluators do."""
    serving = {Role.WORKER, Role.PS} if project.parameter_server else set()
    running = {task.device for task in plan.tasks if task.role not in serving}
    return tuple(member for member in plan.members if member.device in running)


def plan_for_screen(plan: Plan, warnings: tuple[Problem, ...] = ()) -> PlanMade:
    """The plan for a screen, with the ports that will be requested."""
    texts = {f"{task.device}/{task.name}": tf_config(plan, task) for task in plan.tasks if not plan.solo}
    return PlanMade(plan=plan, tf_configs=texts, warnings=warnings)


def since_allowed(
    store: ProjectStore, approved: Sequence[ProjectId], manifest: Manifest
) -> tuple[ProjectId, dict[str, Difference]] | None:
    """The same project, or the newest that was allowed with a script of this name, and how this one differs.

    None: no such project was allowed. Blocks.
    """
    if manifest.digest in approved:
        return manifest.digest, {}
    for project in approved:
        before = store.manifest(project)
        if before is not None and before.script == manifest.script:
            return project, differences(before, manifest)
    return None


def choose_devices(
    spec: RunSpec, me: DeviceId, state: State, *, goes_on: bool = False
) -> tuple[DeviceId, ...]:
    """This device first, then the requested ones, or every paired one that is present and compatible.

    ``goes_on``: as in ``abilities.why_not``. Raises ``TandemError`` for a requested device that is unknown,
    not paired, away, busy or incompatible.
    """
    if spec.solo:
        return (me,)
    if not spec.devices:
        fit = (device.device for device in state.devices.values() if abilities.why_not(device) is None)
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
        if error := abilities.why_not(known, goes_on=goes_on):
            raise error
    return (me, *others)


def who_is_missing(spec: RunSpec, devices: Sequence[DeviceId], state: State) -> tuple[str, ...]:
    """A sentence for each absent paired device, where a run takes whoever is there."""
    if spec.solo or spec.devices:
        return ()
    left = [device for device in state.devices.values() if device.paired and device.device not in devices]
    return tuple(error.what for device in left if (error := abilities.why_not(device)) is not None)


def check_company(spec: RunSpec, devices: Sequence[DeviceId], state: State) -> None:
    """Raises ``TandemError`` where a run that was meant for several laptops would have only one."""
    missing = who_is_missing(spec, devices, state)
    if len(devices) == 1 and missing:
        raise TandemError(
            code="would-be-alone",
            what=f"No other laptop can take part in this run. {' '.join(missing)}",
            fix="Open Tandem there, wait until it is free, and train again. To train here alone, use "
            f"--solo{_without_roles(spec, devices)}.",
        )


def _without_roles(spec: RunSpec, devices: Sequence[DeviceId]) -> str:
    return "" if spec.roles.keys() <= set(devices) else ", and give the others no --role"


def no_shares(spec: RunSpec, plan: Plan) -> tuple[str, ...]:
    """The remark where shares were requested for a run with a single member."""
    if not spec.shares or len(plan.members) > 1:
        return ()
    return ("One laptop alone computes all of each batch: the requested shares are ignored.",)


def names_of(me: DeviceId, state: State) -> dict[DeviceId, str]:
    """Each device's name here; this laptop under its own name."""
    names = {device.device: device.shown_name for device in state.devices.values()}
    return {**names, me: state.me.name if state.me else short(me)}


def choose_hosts(
    devices: Sequence[DeviceId],
    me: DeviceId,
    peer_host: Callable[[DeviceId], str],
    own_host: Callable[[DeviceId], str],
    names: Mapping[DeviceId, str],
) -> dict[DeviceId, str]:
    """Each device's address for its tasks: the one that its link uses. A single device needs none.

    Another node on this very machine is linked over loopback; where other members are elsewhere, it gets this
    machine's address. Raises ``TandemError`` for a device whose link went away.
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
                fix="Make sure that it is on, awake and connected, and train again.",
            )
    mine = [own_host(device) for device in others]
    outside = [host for host in mine if host and not is_loopback(host)]
    own = (outside or mine)[0]
    if outside:
        hosts = {device: own if is_loopback(host) else host for device, host in hosts.items()}
    return {**hosts, me: own} if me in devices else hosts
