"""Data folders: from the starter's request to the place where a member's script finds the files."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from msgspec.structs import replace

from core.project.data import read_kept
from core.project.files import ReadMeter
from core.project.light_receipts import AnyReceipt
from core.project.receipt import PIECE_BYTES
from core.project.store import ProjectStore
from core.run import admission, transfer
from core.run.context import RunLimits
from core.run.transfer import ByteRate
from core.vocabulary import events as ev
from core.vocabulary.access import Grant
from core.vocabulary.data import Data
from core.vocabulary.errors import TandemError
from core.vocabulary.ids import DeviceId, ProjectId, RunId
from core.vocabulary.manifest import Listing, Manifest
from core.vocabulary.peer_messages import Prepare
from core.vocabulary.phases import Training
from core.vocabulary.plan import RunSpec
from core.vocabulary.run_folder import CHECKPOINTS
from core.vocabulary.settings import Settings
from core.walls import enclosure
from core.walls.levels import Level
from tests.core.cluster.laptops import ANNA, BEN, plan_of
from tests.core.run.lan import Lan, LanNode, keep, project
from tests.core.run.test_returns import goes_on_with, stop, train
from tests.core.run.test_runs import both, wait_over
from tests.core.run.world import MANIFEST

WALLS = Level(7, True)
SCRIPT = "import keras\nfolder = '~/photos'\nmodel = keras.Sequential()\nmodel.fit(1)\n"


def photos(folder: Path, text: str = "photo") -> Path:
    (folder / "cats").mkdir(parents=True)
    for number in range(3):
        (folder / "cats" / f"{number}.jpg").write_text(f"{text} {number}")
    (folder / ".thumbnails").write_text(str(folder))
    return folder


@pytest.fixture
def spec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunSpec:
    monkeypatch.setenv("HOME", str(tmp_path.resolve() / "home"))
    path = photos(tmp_path.resolve() / "home" / "photos")
    return replace(project(tmp_path / "thesis", SCRIPT), data={"photos": str(path)})


def declare(node: LanNode, place: Path) -> None:
    node.emit(ev.SettingsChanged(settings=Settings(name=node.name, data={"photos": str(place)})))


async def run(lan: Lan, spec: RunSpec) -> ev.ConsentAsked:
    """Waits until both train; returns the question that Ben was asked."""
    anna, ben = both(lan)
    ben.ask_before_running(anna)
    await anna.runs.start(spec)
    await lan.wait_until(lambda: ben.state.consents)
    (asked,) = (event for event in ben.events if isinstance(event, ev.ConsentAsked))
    await ben.runs.answer_consent(asked.run, "once")
    await lan.wait_until(lambda: anna.runs_a_trainer and ben.runs_a_trainer)
    return asked


async def end(lan: Lan) -> None:
    for node in both(lan):
        node.trainers[-1].end()
    await lan.wait_until(lambda: all(node.over for node in both(lan)))


async def test_data_that_is_missing_here_is_sent_and_kept(tmp_path: Path, spec: RunSpec) -> None:
    async with Lan(tmp_path, level=WALLS) as lan:
        _, ben = both(lan)
        asked = await run(lan, spec)
        (data,) = asked.data
        assert (data.name, data.asked, data.files, data.total_bytes) == ("photos", "~/photos", 3, 21)
        assert asked.opened == ()
        train = ben.trainers[-1].train
        place = Path(train.data["~/photos"])
        assert place.is_relative_to(ben.home.projects.resolve())
        assert sorted(path.name for path in place.rglob("*.jpg")) == ["0.jpg", "1.jpg", "2.jpg"]
        assert train.walls is not None
        assert train.walls.opened == (Grant(asked="~/photos", path=str(place)),)
        assert not any(place.is_relative_to(folder) for folder in train.walls.folders)
        await end(lan)
        (place / "cats" / "0.jpg").write_text("altered")  # as no script can
        await both(lan)[0].runs.start(spec)
        await lan.wait_until(lambda: ben.runs_a_trainer)
        assert (place / "cats" / "0.jpg").read_text() == "photo 0"
        await end(lan)


async def test_the_same_data_under_two_names_comes_once(tmp_path: Path, spec: RunSpec) -> None:
    again = photos(tmp_path.resolve() / "home" / "album")
    async with Lan(tmp_path, level=WALLS) as lan:
        _, ben = both(lan)
        sent = fetches(ben)
        await run(lan, replace(spec, data={**spec.data, "album": str(again)}))
        places = ben.trainers[-1].train.data
        assert places["~/photos"] == places["~/album"]
        assert len(list(Path(places["~/album"]).rglob("*.jpg"))) == 3
        assert len([file for each in sent for file in each.files if file.path.endswith(".jpg")]) == 3
        await end(lan)


async def test_data_that_came_stays_if_the_run_breaks_while_more_travels(
    tmp_path: Path, spec: RunSpec
) -> None:
    """However little the settings keep: the next run fetches only the rest."""
    home = tmp_path.resolve() / "home"
    data = {name: str(photos(home / name, name)) for name in ("album", "beach", "city")}
    (home / "city" / "large.bin").write_bytes(bytes(20 * PIECE_BYTES))
    async with Lan(tmp_path, level=WALLS) as lan:
        anna, ben = both(lan)
        ben.emit(ev.SettingsChanged(settings=Settings(name="Ben", keep_gb=0)))
        anna.files.limit_bytes = 5 * PIECE_BYTES
        await anna.runs.start(replace(spec, data=data))
        await lan.wait_until(lambda: ben.files.came["large.bin"] or ben.trainers)
        assert not ben.trainers and anna.files.limit_bytes < 5 * PIECE_BYTES
        ben.runs.stop()
        await lan.wait_until(lambda: all(node.over and not node.runs.busy for node in both(lan)))
        await ben.runs._context.background.wait_idle()
        assert len(list(ben.home.projects.glob("*.json"))) == 3, "the project and two of the data"
        came, anna.files.limit_bytes = Counter(ben.files.came), math.inf
        await anna.runs.start(replace(spec, data=data))
        await lan.wait_until(lambda: ben.runs_a_trainer)
        came = ben.files.came - came
        assert not [name for name in came if name.endswith(".jpg") and came[name] > len("city 0")]
        assert 0 < came["large.bin"] < 20 * PIECE_BYTES and "train.py" not in came
        await end(lan)


async def test_checking_storing_and_copying_files_are_reported(
    tmp_path: Path, spec: RunSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transfer, "ReadMeter", partial(ReadMeter, every_s=0))
    async with Lan(tmp_path, level=WALLS) as lan:
        anna, ben = both(lan)

        def told() -> list[str]:
            events = (event for event in anna.events if isinstance(event, ev.MemberPhaseChanged))
            found = [event.words for event in events if event.device == ben.device and event.words]
            assert all(event.done <= event.total for event in events)
            return list(dict.fromkeys(found))

        await run(lan, spec)
        assert told() == ["putting files in place", "copying files"]
        await end(lan)
        await anna.runs.start(spec)
        await lan.wait_until(lambda: ben.runs_a_trainer)
        assert "checking files" in told()
        await end(lan)


async def test_the_same_data_here_is_used_where_it_lies(tmp_path: Path, spec: RunSpec) -> None:
    async with Lan(tmp_path, level=WALLS) as lan:
        _, ben = both(lan)
        place = photos(tmp_path.resolve() / "bens")
        declare(ben, place)
        asked = await run(lan, spec)
        assert asked.opened == (Grant(asked="~/photos", path=str(place)),)
        train = ben.trainers[-1].train
        assert train.data["~/photos"] == str(place)
        assert train.walls is not None
        assert train.walls.opened == asked.opened
        assert len(list(ben.home.projects.glob("*.json"))) == 1  # the project alone
        await end(lan)


@pytest.mark.parametrize("text", ["photo", "other"])
async def test_while_a_folder_of_this_laptop_is_read_nothing_counts_as_received(
    tmp_path: Path, spec: RunSpec, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setattr(transfer, "ReadMeter", partial(ReadMeter, every_s=0))
    came, at = list[int](), ByteRate.at

    def heard(rate: ByteRate, now_s: float, done: int) -> float:
        came.append(done)
        return at(rate, now_s, done)

    monkeypatch.setattr(ByteRate, "at", heard)
    async with Lan(tmp_path, level=WALLS) as lan:
        anna, ben = both(lan)
        declare(ben, photos(tmp_path.resolve() / "bens", text))
        await run(lan, spec)
        events = [event for event in anna.events if isinstance(event, ev.MemberPhaseChanged)]
        of_ben = [event for event in events if event.device == ben.device and event.phase == "receiving"]
        assert "checking files" in [event.words for event in of_ben]
        done = [event.done for event in of_ben if not event.words]
        code_bytes = done[-1] - 21
        assert set(done) == {0, code_bytes, done[-1]} and done == sorted(done)
        assert came[-1] == code_bytes + (0 if text == "photo" else 21), "what came over the network"
        await end(lan)


async def test_while_a_laptop_that_is_to_join_reads_its_own_folder_it_says_so(
    tmp_path: Path, spec: RunSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transfer, "ReadMeter", partial(ReadMeter, every_s=0))
    limits = RunLimits(look_s=0.05, idle_s=5.0)
    async with Lan(tmp_path, ("Anna", "Ben", "Cleo"), limits, tells_busy=True) as lan:
        anna, ben, cleo = lan.nodes.values()
        declare(cleo, photos(tmp_path.resolve() / "cleos"))
        before = await train(lan, spec, anna, ben)
        anna.runs.returns.add(before, (cleo.device,))
        await goes_on_with(lan, before, anna, ben, cleo)
        for node in (anna, cleo):
            events = [event for event in node.events if isinstance(event, ev.JoinProgressed)]
            assert "checking files" in [event.words for event in events], node.name
            assert (events[-1].total, events[-1].words) == (0, "")
        assert cleo.state.run is not None
        plan = cleo.state.run.plan
        assert ProjectStore(cleo.home.projects).expected() == {
            plan.project,
            *(data.listing.digest for data in plan.data),
        }
        await stop(lan, anna, ben, cleo)


async def test_a_yes_is_for_the_data_too(tmp_path: Path, spec: RunSpec) -> None:
    async with Lan(tmp_path, level=WALLS) as lan:
        anna, ben = both(lan)
        await run(lan, replace(spec, data={}))
        anna.trainers[-1].end()
        ben.trainers[-1].end()
        await wait_over(lan)
        await anna.runs.start(spec)
        await lan.wait_until(lambda: ben.state.consents)
        assert ben.state.consents[0].changed and ben.state.consents[0].beyond == ("data",)
        await ben.runs.answer_consent(ben.state.consents[0].run, "no")
        await lan.wait_until(lambda: anna.over)


async def test_other_data_of_that_name_stays_closed(tmp_path: Path, spec: RunSpec) -> None:
    async with Lan(tmp_path, level=WALLS) as lan:
        _, ben = both(lan)
        place = photos(tmp_path.resolve() / "bens", "other")
        declare(ben, place)
        await run(lan, spec)
        train = ben.trainers[-1].train
        assert train.walls is not None
        assert str(place) not in [each.path for each in train.walls.opened]
        assert Path(train.data["~/photos"], "cats", "0.jpg").read_text() == "photo 0"
        await end(lan)


async def test_one_file_may_be_data(tmp_path: Path, spec: RunSpec) -> None:
    async with Lan(tmp_path) as lan:
        file = tmp_path / "table.csv"
        file.write_text("1,2")
        _, ben = both(lan)
        asked = await run(lan, replace(spec, data={"table": str(file)}))
        assert asked.data[0].is_file
        assert Path(ben.trainers[-1].train.data[str(file)]).read_text() == "1,2"
        await end(lan)


async def stopped_with_data(lan: Lan, spec: RunSpec) -> tuple[RunId, Data]:
    """A run of Anna's with a checkpoint on Ben's laptop."""
    anna, ben = both(lan)
    (data,) = (await run(lan, spec)).data
    for node in (anna, ben):
        node.trainers[-1].meet()
        node.trainers[-1].make_step()
    await lan.wait_until(lambda: isinstance(anna.phase, Training))
    assert anna.state.run is not None
    began = anna.state.run.plan.run
    keep(ben.home.runs / began / CHECKPOINTS, 40)
    anna.runs.stop()
    await lan.wait_until(lambda: anna.over and ben.over)
    return began, data


def fetches(node: LanNode) -> list[Manifest]:
    """Its requests to other laptops from now on."""
    found, fetch = list[Manifest](), node.files.fetch

    async def counted(
        device: DeviceId, receipt: AnyReceipt, *rest: Callable[[], None], silent_s: float | None = None
    ) -> None:
        wanted = {want.file for want in receipt.wanted}
        files = [file for number, file in enumerate(receipt.manifest.files) if number in wanted]
        found.append(replace(receipt.manifest, files=tuple(files)))
        await fetch(device, receipt, *rest, silent_s=silent_s)

    node.files.fetch = counted  # type: ignore[method-assign, assignment]
    return found


@pytest.mark.parametrize("own", [False, True])
async def test_a_laptop_that_goes_on_with_anothers_run_reads_its_data_where_it_is(
    tmp_path: Path, spec: RunSpec, own: bool
) -> None:
    async with Lan(tmp_path, level=WALLS) as lan:
        anna, ben = both(lan)
        if own:
            declare(ben, photos(tmp_path.resolve() / "bens"))
        began, data = await stopped_with_data(lan, spec)
        await ben.runs.start(RunSpec(script="", solo=True, resume=began))
        await lan.wait_until(lambda: ben.runs_a_trainer)
        place = ben.trainers[-1].train.data["~/photos"]
        assert Path(place, "cats", "0.jpg").read_text() == "photo 0"
        assert Path(place).is_relative_to(tmp_path.resolve() / "bens" if own else ben.home.projects.resolve())
        ben.trainers[-1].end()
        await lan.wait_until(lambda: ben.over)
        fetched = fetches(anna)
        (tmp_path / "thesis" / "data.csv").write_text("changed since")
        await ben.runs.start(RunSpec(script="", devices=(anna.device,), resume=began))
        await lan.wait_until(lambda: anna.runs_a_trainer and ben.runs_a_trainer)
        (project,) = (each for each in fetched if each.script)
        assert {file.path for file in project.files} == {"data.csv"}, "the rest is Anna's own"
        assert not [file for each in fetched for file in each.files if file.path.endswith(".jpg")]
        assert anna.state.run is not None
        assert anna.state.run.plan.data == (replace(data, place=place),)
        assert Path(anna.trainers[-1].train.data["~/photos"], "cats", "0.jpg").read_text() == "photo 0"
        await end(lan)


async def test_no_run_goes_on_without_its_data(tmp_path: Path, spec: RunSpec) -> None:
    async with Lan(tmp_path, level=WALLS) as lan:
        _, ben = both(lan)
        began, data = await stopped_with_data(lan, spec)
        ProjectStore(ben.home.projects).forget(ProjectId(data.listing.digest))
        with pytest.raises(TandemError, match="The data photos of this run is no longer here"):
            await ben.runs.start(RunSpec(script="", solo=True, resume=began))


KEPT = {"mnist.npz": b"digits", "fashion-mnist/images.gz": b"shirts", "fashion-mnist/labels.gz": b"names"}
LOADS = "".join(f"keras.datasets.{name}.load_data()\n" for name in ("mnist", "fashion_mnist"))
LOADING = f"import keras\n{LOADS}keras.Sequential().fit(1)\n"


@pytest.mark.parametrize("walled", [True, False])
@pytest.mark.parametrize(
    ("has", "comes"),
    [
        ({}, {"mnist.npz", "fashion-mnist"}),
        ({"fashion-mnist/": b""}, {"mnist.npz", "fashion-mnist"}),
        ({"mnist.npz": b"other"}, {"mnist.npz", "fashion-mnist"}),
        ({"mnist.npz": b"dig", "fashion-mnist/images.gz": b"shirts"}, {"mnist.npz", "fashion-mnist"}),
        ({"mnist.npz/mnist.npz": b"digits"}, {"mnist.npz", "fashion-mnist"}),
        ({"mnist.npz": b"digits"}, {"fashion-mnist"}),
        (KEPT, set()),
    ],
    ids=["nothing", "an empty folder", "another file", "parts", "a folder", "one of them", "both"],
)
async def test_others_scripts_read_what_keras_downloaded_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has: dict[str, bytes], comes: set[str], walled: bool
) -> None:
    """Another laptop's script looks below a home of its own, within walls or without. One variable stands for
    both homes: the question is looked up in Ben's, which moves in between."""
    homes = {name: tmp_path.resolve() / f"home-{name}" for name in ("anna", "ben")}
    for name, files in (("anna", KEPT), ("ben", has)):
        for path, content in files.items():
            place = homes[name] / ".keras" / "datasets" / path
            (place if path.endswith("/") else place.parent).mkdir(parents=True, exist_ok=True)
            if not path.endswith("/"):
                place.write_bytes(content)
    monkeypatch.setenv("HOME", str(homes["anna"]))
    async with Lan(tmp_path, level=WALLS if walled else Level(0, False)) as lan:
        anna, ben = both(lan)
        ben.ask_before_running(anna)
        await anna.runs.start(project(tmp_path / "thesis", LOADING))
        monkeypatch.setenv("HOME", str(homes["ben"]))
        await lan.wait_until(lambda: ben.state.consents)
        asked = {data.asked: data for data in ben.state.consents[0].data}
        assert asked["~/.keras/datasets/mnist.npz"].may_carry_code
        assert asked.keys() == {f"~/.keras/datasets/{name}" for name in ("mnist.npz", "fashion-mnist")}
        sent = fetches(ben)
        await ben.runs.answer_consent(ben.state.consents[0].run, "once")
        await lan.wait_until(lambda: anna.runs_a_trainer and ben.runs_a_trainer)
        names = {path.rpartition("/")[2]: path.partition("/")[0] for path in KEPT}
        assert {names[file.path] for each in sent for file in each.files if file.path in names} == comes
        walls = ben.trainers[-1].train.walls
        assert walls is not None
        enclosure.prepare(walls)
        found = Path(enclosure.environment(walls, {})["HOME"], ".keras", "datasets")
        assert {path: (found / path).read_bytes() for path in KEPT} == KEPT
        await end(lan)


async def test_no_download_is_sent_where_a_script_would_not_find_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = tmp_path.resolve() / "home" / ".keras" / "datasets" / "mnist.npz"
    kept.parent.mkdir(parents=True)
    kept.write_text("digits")
    (data,) = read_kept(["datasets/mnist.npz"], kept.parent.parent)
    kept.unlink()
    monkeypatch.setenv("HOME", str(tmp_path.resolve() / "home"))
    async with Lan(tmp_path) as lan:
        context = both(lan)[1].runs._context
        assert context.find_keras_download(data.data) is None
        monkeypatch.setattr("sys.platform", "win32")
        assert context.find_keras_download(data.data) == kept


def test_invariant_a_path_that_leads_elsewhere_is_no_download(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("secret")
    kept = tmp_path / ".keras" / "datasets" / "a.npz"
    kept.parent.mkdir(parents=True)
    kept.write_bytes(b"numbers")
    found = read_kept(["datasets/a.npz", "datasets/../../key", str(tmp_path / "key")], tmp_path / ".keras")
    assert [each.data.kept_by_keras for each in found] == ["datasets/a.npz"]


def test_invariant_a_starter_cannot_pass_other_data_off_as_a_download_of_keras() -> None:
    """Walls leave a download on this laptop open, and nobody is asked about it."""
    listing = Listing(digest="a" * 64, size=3)
    for below, kept in (
        (".keras/datasets/mnist.npz", "datasets/mnist.npz"),
        (".keras/keras.json", ""),
        (".keras/diary/may", ""),
        (".keras/datasets", ""),
    ):
        data = Data(name="d", path="/d", below_home=below, listing=listing, files=1, total_bytes=1)
        assert data.kept_by_keras == kept


async def test_a_change_while_it_travels_ends_the_run(tmp_path: Path, spec: RunSpec) -> None:
    async with Lan(tmp_path) as lan:
        anna, ben = both(lan)
        ben.ask_before_running(anna)
        await anna.runs.start(spec)
        await lan.wait_until(lambda: ben.state.consents)
        Path(spec.data["photos"], "cats", "1.jpg").write_text("another")
        await ben.runs.answer_consent(ben.state.consents[0].run, "once")
        await lan.wait_until(lambda: anna.over)
        assert "project-changed" in repr(anna.phase)
        (kept,) = ben.home.projects.glob("*.json")
        assert anna.state.run is not None and kept.stem == anna.state.run.plan.project, "none of the data"


async def test_a_folder_with_pickles_is_announced_as_such(tmp_path: Path, spec: RunSpec) -> None:
    (Path(spec.data["photos"]) / "cats" / "data_batch_1").write_bytes(b"a pickle of cifar-10's")
    async with Lan(tmp_path) as lan:
        (data,) = (await run(lan, spec)).data
        assert data.may_carry_code
        await end(lan)


async def test_a_folder_without_pickles_is_announced_as_without_code(tmp_path: Path, spec: RunSpec) -> None:
    async with Lan(tmp_path) as lan:
        (data,) = (await run(lan, spec)).data
        assert not data.may_carry_code
        await end(lan)


@pytest.mark.parametrize("name", ["labels.pkl", "x.npy", "MODEL.H5", "data_batch_1"])
async def test_invariant_no_code_comes_where_the_other_laptop_said_that_there_is_none(
    tmp_path: Path, spec: RunSpec, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (Path(spec.data["photos"]) / name).write_text("code")
    monkeypatch.setattr("core.project.data.may_carry_code", lambda paths: False)
    async with Lan(tmp_path) as lan:
        anna, ben = both(lan)
        ben.ask_before_running(anna)
        await anna.runs.start(spec)
        await lan.wait_until(lambda: ben.state.consents)
        assert not ben.state.consents[0].data[0].may_carry_code, "a lie"
        await ben.runs.answer_consent(ben.state.consents[0].run, "once")
        await lan.wait_until(lambda: anna.over)
        assert "transfer-broken" in repr(anna.phase)
        assert not list(ben.home.projects.rglob(name))


async def test_an_empty_folder_is_no_data(tmp_path: Path, spec: RunSpec) -> None:
    (tmp_path / "empty").mkdir()
    async with Lan(tmp_path) as lan:
        with pytest.raises(TandemError) as refused:
            await both(lan)[0].runs.start(replace(spec, data={"photos": str(tmp_path / "empty")}))
        assert refused.value.code == "data-unusable"


@pytest.mark.parametrize(
    "wrong",
    [
        {"below_home": "../.ssh"},
        {"below_home": "/etc"},
        {"path": "relative"},
        {"place": "relative"},
        {"name": "../photos"},
        {"files": 0},
        {"is_file": True},
        {"listing": Listing(digest="/usr/share", size=3)},
        {"listing": Listing(digest="../../" + "a" * 58, size=3)},
        {"listing": Listing(digest="a" * 63 + "\0", size=3)},
    ],
)
def test_unsound_descriptions_are_refused(wrong: dict[str, object]) -> None:
    good = Data(
        name="photos",
        path="/data/photos",
        listing=Listing(digest="a" * 64, size=3),
        files=2,
        total_bytes=5,
    )
    plan = replace(plan_of(project=MANIFEST.digest), run="20261126-120000-abcdef")
    refusals = [
        admission.why_unfit(BEN, ANNA, Prepare(plan=replace(plan, data=(each,)), manifest=MANIFEST))
        for each in (good, replace(good, **wrong))
    ]
    assert [each is None for each in refusals] == [True, False]
