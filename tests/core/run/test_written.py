"""Files that a run's script wrote follow the training: to laptops that join, and back to its own folder."""

from __future__ import annotations

import errno
import io
import os
import zipfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from core.project.outputs import Outputs
from core.run.context import RunLimits
from core.run.outputs import FolderSnapshot
from core.run.written import OwnFiles, WrittenFiles, find, find_instead, lay_out, may_travel, select
from core.vocabulary import peer_messages as ms
from core.vocabulary import run_folder, wire
from core.vocabulary.ids import DeviceId, RunId
from core.vocabulary.manifest import Manifest
from core.vocabulary.plan import RunSpec
from tests.core.project.making import content, manifest_for, write
from tests.core.run.lan import LOST, Lan, LanNode
from tests.core.run.test_returns import goes_on_with, heard, left, members, nodes, run_of, said, stop, train
from tests.core.run.test_succession import goes_on
from tests.core.run.world import failing

QUICK = RunLimits(look_s=0.05, idle_s=5.0, stand_in_s=0.3, recover_s=5.0)
EPOCHS = [f"{epoch},0.{epoch}\n" for epoch in range(1, 7)]
PROJECT = manifest_for({"train.py": b"import keras"})
EVENTS = "events.out.tfevents.1795401195.anna.lan.41.0.v2"


@pytest.fixture
async def three(tmp_path: Path) -> AsyncIterator[Lan]:
    async with Lan(tmp_path, ("Anna", "Ben", "Cleo"), QUICK, tells_busy=True) as lan:
        yield lan


def writes(first: int, last: int, *them: LanNode) -> None:
    """Each member's script logs these epochs and keeps a model of each, with other bytes, like Keras."""
    for node in them:
        work = node.trainers[-1].work
        with (work / "log.csv").open("a") as log:
            log.writelines(EPOCHS[first - 1 : last])
        (work / "models").mkdir(exist_ok=True)
        for epoch in range(first, last + 1):
            (work / "models" / f"{epoch}.keras").write_text(f"epoch {epoch} of {node.name}")


def has_written(folder: Path) -> tuple[str, list[str]]:
    return (folder / "log.csv").read_text(), sorted(path.name for path in (folder / "models").iterdir())


def model(node: LanNode, epoch: int) -> str:
    return (node.trainers[-1].work / "models" / f"{epoch}.keras").read_text()


def expected(last: int) -> tuple[str, list[str]]:
    return "".join(EPOCHS[:last]), [f"{epoch}.keras" for epoch in range(1, last + 1)]


async def adds(lan: Lan, run: RunId, joining: LanNode, *them: LanNode) -> RunId:
    them[0].runs.returns.add(run, (joining.device,))
    return await goes_on_with(lan, run, *them, joining)


async def test_a_laptop_that_joins_late_gets_what_the_script_wrote_so_the_chief_may_be_lost_afterwards(
    three: Lan, spec: RunSpec
) -> None:
    anna, ben, cleo = nodes(three)
    run = await train(three, spec, anna, ben)
    writes(1, 2, anna, ben)
    again = await adds(three, run, cleo, anna, ben)
    for node in (ben, cleo):
        assert has_written(node.trainers[-1].work) == expected(2), node.name
    assert anna.trainers[-1].work == Path(spec.script).parent
    writes(3, 4, anna, ben, cleo)
    anna.trainers[-1].end(failing("killed"))
    await three.wait_until(lambda: left(ben, anna))
    writes(5, 6, ben, cleo)
    for node in (ben, cleo):
        node.trainers[-1].end()
    await three.wait_until(lambda: all(node.over for node in (anna, ben, cleo)))
    assert has_written(anna.home.runs / again / run_folder.OUTPUTS) == expected(6)


async def test_files_that_a_laptop_wrote_itself_do_not_travel_again(three: Lan, spec: RunSpec) -> None:
    anna, ben, cleo = nodes(three)
    run = await train(three, spec, anna, ben)
    for node in (anna, ben):
        (node.trainers[-1].work / "log.csv").write_text("".join(EPOCHS))
    told = heard(anna)
    await adds(three, run, cleo, anna, ben)
    wanted = [each for each in told if isinstance(each, ms.FilesWanted) and each.run == run_of(anna)]
    assert sorted(each.total_bytes > 0 for each in wanted) == [False, True], "ben has it, cleo lacks it"
    await stop(three, anna, ben, cleo)


async def test_a_laptop_that_stayed_gets_no_file_that_its_own_script_has_written(
    three: Lan, spec: RunSpec
) -> None:
    """Keras writes each model with other bytes on each laptop; TensorBoard's events are the chief's alone."""
    anna, ben, cleo = nodes(three)
    run = await train(three, spec, anna, ben)
    writes(1, 2, anna, ben)
    ben.files.came.clear()
    run = await adds(three, run, cleo, anna, ben)
    assert not ben.files.came
    assert has_written(ben.trainers[-1].work) == has_written(cleo.trainers[-1].work) == expected(2)
    assert model(ben, 1) == "epoch 1 of Ben" and model(cleo, 1) == "epoch 1 of Anna"

    # Again, with what the chief alone has written, and what a lost laptop has not.
    writes(3, 3, anna, ben, cleo)
    (anna.trainers[-1].work / EVENTS).write_text("of the chief")
    cleo.trainers[-1].end(failing("killed"))
    writes(4, 4, anna, ben)
    await goes_on_with(three, run, anna, ben, cleo)
    assert ben.files.came == {EVENTS: len("of the chief")}
    for node in (ben, cleo):
        assert has_written(node.trainers[-1].work) == expected(4), node.name
        assert (node.trainers[-1].work / EVENTS).read_text() == "of the chief"
    assert model(ben, 4) == "epoch 4 of Ben" and model(cleo, 4) == "epoch 4 of Anna"
    await stop(three, anna, ben, cleo)


def test_files_that_changed_since_are_not_used_in_place_of_what_another_laptop_wrote(tmp_path: Path) -> None:
    models = {f"{name}.keras": f"of this laptop: {name}".encode() for name in ("first", "second")}
    place = tmp_path / run_folder.WRITTEN
    write(place / "files", {name: text.decode() for name, text in models.items()})
    (place / "new.json").write_bytes(wire.to_json(manifest_for(models)))
    coming = manifest_for(dict.fromkeys(models, b"of another laptop"))

    def found() -> set[str]:
        instead = find_instead(tmp_path, coming)
        return set() if instead is None else {file.path for file in instead.files.files}

    assert found() == {"first.keras", "second.keras"}
    (place / "files" / "first.keras").write_text("half of it")
    assert found() == {"second.keras"}
    (place / "files" / "second.keras").unlink()
    assert found() == set()


def test_a_model_that_was_cut_off_is_not_passed_on(tmp_path: Path) -> None:
    saved = io.BytesIO()
    with zipfile.ZipFile(saved, "w") as archive:
        archive.writestr("model.weights.h5", b"w" * 1000)
    whole = saved.getvalue()
    files = {"best.keras": whole, "last.keras": whole[:600]}
    own, run = write(tmp_path / "own", {"train.py": b""}), tmp_path / "run"
    run.mkdir()
    FolderSnapshot(own, deep=True).save(run / run_folder.BESIDE)
    write(own, {**files})
    place = write(run / run_folder.WRITTEN / "files", {**files}).parent
    listed = wire.to_json(manifest_for(files))
    (place / "new.json").write_bytes(listed)
    there = find_instead(run, manifest_for(files))
    here = find(run, PROJECT, own)
    (place / "list.json").write_bytes(listed)
    for found in (there, here, find(run)):
        assert found is not None and [file.path for file in found.files.files] == ["best.keras"]


async def test_files_written_without_the_starter_are_beside_its_script_once_it_is_back(
    three: Lan, spec: RunSpec
) -> None:
    anna, ben, _ = nodes(three)
    folder = Path(spec.script).parent
    run = await train(three, spec, anna, ben)
    writes(1, 2, anna, ben)
    (folder / "notes.txt").write_text("mine")
    three.lose(anna, ben, LOST)
    await goes_on(three, run, ben)
    assert has_written(ben.trainers[-1].work) == expected(2)
    writes(3, 4, ben)
    (ben.trainers[-1].work / "notes.txt").write_text("mine as well")
    (ben.trainers[-1].work / "settings.json").write_text("{}")
    three.mend(anna, ben)
    again = await goes_on(three, run, anna, ben, step=60)
    for node in (anna, ben):
        assert has_written(node.trainers[-1].work) == expected(4), node.name
    assert (folder / "notes.txt").read_text() == "mine as well"
    replaced = anna.home.runs / run / run_folder.REPLACED
    assert content(replaced) == {
        "notes.txt": b"mine",
        "log.csv": "".join(EPOCHS[:2]).encode(),
        **{f"models/{epoch}.keras": f"epoch {epoch} of Anna".encode() for epoch in (1, 2)},
    }
    assert f"are kept in {replaced}" in said(anna)
    assert not (folder / "settings.json").exists(), "it might be another program's"
    assert (anna.home.runs / again / run_folder.OUTPUTS / "settings.json").read_text() == "{}"
    assert "not put beside it: settings.json" in said(anna)
    await stop(three, anna, ben)


async def test_a_laptop_with_an_older_tandem_trains_as_before(
    three: Lan, spec: RunSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    anna, ben, cleo = nodes(three)
    changed(ben, monkeypatch, None)
    run = await train(three, spec, anna, ben)
    writes(1, 2, anna, ben)
    await adds(three, run, cleo, anna, ben)
    assert has_written(cleo.trainers[-1].work) == expected(2)
    assert not (ben.trainers[-1].work / "log.csv").exists()
    await stop(three, anna, ben, cleo)


def changed(node: LanNode, monkeypatch: pytest.MonkeyPatch, files: Manifest | None) -> None:
    """From now on each request to go on with a run comes with these written files instead."""
    receive = node.runs.on_message

    def tampered(device: DeviceId, message: ms.Message) -> None:
        if isinstance(message, ms.Prepare) and message.plan.resume is not None:
            message = replace(message, written=files)
        receive(device, message)

    monkeypatch.setattr(node.runs, "on_message", tampered)


@pytest.mark.parametrize(
    "path", ["more.py", "train.py", ".vscode/a.csv", "a.so", "Train.PY", "data.csv", "model.pkl"]
)
async def test_invariant_no_code_comes_as_a_file_that_the_script_wrote(
    three: Lan, spec: RunSpec, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    anna, ben, cleo = nodes(three)
    changed(cleo, monkeypatch, manifest_for({path: b"evil"}, ""))
    run = await train(three, spec, anna, ben)
    anna.runs.returns.add(run, (cleo.device,))

    def without_it() -> bool:
        return run_of(anna) != run and members(anna) == {"Anna", "Ben"} and anna.runs_a_trainer

    await three.wait_until(without_it)
    assert not cleo.trainers
    await stop(three, anna, ben)


def brought(folder: Path, files: dict[str, bytes | str]) -> WrittenFiles:
    write(folder, files)
    return WrittenFiles(folder, manifest_for(content(folder), ""))


def test_invariant_only_what_the_script_wrote_is_replaced_beside_it(tmp_path: Path) -> None:
    project = write(tmp_path / "own", {"train.py": "import keras", "data.csv": "mine", "log.csv": "1"})
    (tmp_path / "elsewhere").mkdir()
    (project / "linked").symlink_to(tmp_path / "elsewhere")
    (project / "to.log").symlink_to(tmp_path / "elsewhere" / "a.log")
    coming: dict[str, bytes | str] = dict.fromkeys(
        [
            *("data.csv", "log.csv", "new.csv", "linked/a.csv", "to.log"),
            *("package.json", "train.py/a.csv", "best.keras", f"logs/{EVENTS}"),
        ],
        "theirs",
    )
    own = OwnFiles({"log.csv", "linked", "to.log"}, tmp_path / "replaced")
    left = lay_out(brought(tmp_path / "came", coming), project, PROJECT, own)
    assert [file.path for file in left] == [
        *("data.csv", "linked/a.csv", "package.json", "to.log", "train.py/a.csv")
    ]
    assert {path: content(project)[path] for path in ("train.py", "data.csv")} == {
        "train.py": b"import keras",
        "data.csv": b"mine",
    }
    new = ("log.csv", "new.csv", "best.keras", f"logs/{EVENTS}")
    assert all((project / name).read_text() == "theirs" for name in new)
    assert content(tmp_path / "replaced") == {"log.csv": b"1"}
    assert not (project / "package.json").exists()
    assert not content(tmp_path / "elsewhere")


def test_replaced_files_are_kept_even_on_another_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def link(source: Path, target: Path, **kinds: object) -> None:
        raise OSError(errno.EXDEV, "another disk")

    monkeypatch.setattr(os, "link", link)
    project = write(tmp_path / "own", {"train.py": "import keras", "log.csv": "mine"})
    own = OwnFiles({"log.csv"}, tmp_path / "replaced")
    assert not lay_out(brought(tmp_path / "came", {"log.csv": "theirs"}), project, PROJECT, own)
    assert content(tmp_path / "replaced") == {"log.csv": b"mine"}
    assert (project / "log.csv").read_text() == "theirs"


def test_no_model_comes_to_a_script_that_vanished(tmp_path: Path) -> None:
    work = write(tmp_path / "work", {"other.py": ""})
    came = brought(tmp_path / "came", {"best.keras": "code?", "log.csv": "1"})
    (left,) = lay_out(came, work, PROJECT)
    assert left.path == "best.keras" and sorted(content(work)) == ["log.csv", "other.py"]


async def test_files_that_were_brought_are_removed_even_if_a_working_copy_has_to_stay(
    three: Lan, spec: RunSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    anna, ben, cleo = nodes(three)
    run = await train(three, spec, anna, ben)
    writes(1, 2, anna, ben)
    again = await adds(three, run, cleo, anna, ben)
    anna.trainers[-1].end(failing("killed"))
    await three.wait_until(lambda: left(ben, anna))
    folder, work = ben.home.runs / again, ben.trainers[-1].work
    assert (folder / run_folder.BROUGHT).is_dir()
    asked = list[Path]()

    def unreadable(work: Path, before: Manifest, *, limit_bytes: int) -> Outputs:
        asked.append(work)
        raise OSError(errno.EIO, "cannot be read")

    monkeypatch.setattr("core.run.participant.driver.find_outputs", unreadable)
    three.lose(anna, ben, LOST)
    await three.wait_until(lambda: asked and not (folder / run_folder.BROUGHT).exists())
    assert asked == [work] and work.is_dir()


@pytest.mark.parametrize("word", ["safe_mode=False", "enable_unsafe_deserialization()"])
def test_invariant_no_model_comes_to_a_script_that_may_run_code_in_it(tmp_path: Path, word: str) -> None:
    files = {"train.py": f"load({word})".encode()}
    work = write(tmp_path / "work", {path: text.decode() for path, text in files.items()})
    came = brought(tmp_path / "came", {"best.keras": "code?", "best.weights.h5": "numbers"})
    (left,) = lay_out(came, work, manifest_for(files))
    assert left.path == "best.keras" and sorted(content(work)) == ["best.weights.h5", "train.py"]


def test_the_smallest_files_of_a_long_list_are_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    found = manifest_for({f"{size:05d}.csv": b"x" * size for size in range(2000)}, "")
    chosen = select(found, PROJECT)
    assert 500 < len(chosen.files) < 1000
    assert [file.size for file in chosen.files] == list(range(len(chosen.files)))


def test_kinds_that_carry_no_code_travel() -> None:
    kinds = ["log.csv", "m.keras", "m.weights.h5", f"train/{EVENTS}", "run.log", "a/plot.png"]
    plots = [EVENTS.removesuffix(".v2"), "events.out.tfevents.17.a-b.lan.profile-empty"]
    assert all(map(may_travel, kinds + plots))
    assert not any(map(may_travel, ["m.h5", "m.pb", "a.npy", "a.pickle", "a.sh", "a", "a/.env/b.csv", ".a"]))


@pytest.mark.parametrize(
    "end", ["1.pkl", "1.anna.2.pkl", "1.anna.2.3.v2.py", "1.anna", "a.b.2.3.v2", "1..v2"]
)
def test_invariant_no_code_travels_under_a_name_that_begins_like_tensorboards(end: str) -> None:
    assert not may_travel(f"events.out.tfevents.{end}")


def test_invariant_only_new_logs_and_models_travel_from_the_users_own_folder(tmp_path: Path) -> None:
    folder, run = write(tmp_path / "own", {"train.py": "import keras", "old.csv": "1"}), tmp_path / "run"
    run.mkdir()
    write(folder, {".tandemignore": "private\n"})
    FolderSnapshot(folder, deep=True).save(run / run_folder.BESIDE)
    wrote = ["best.keras", "log.csv", f"logs/{EVENTS}", "m.weights.h5", "run.log"]
    users = [".env", "id_rsa.txt", "new.py", "photo.jpg", "private/a.csv", "tokens.json"]
    write(folder, dict.fromkeys([*wrote, *users], "2"))
    found = find(run, PROJECT, folder)
    assert found is not None and found.folder == folder
    assert [file.path for file in found.files.files] == wrote
    assert find(run, PROJECT) is None and find(tmp_path, PROJECT, folder) is None
    moved = folder.rename(tmp_path / "moved")
    assert find(run, PROJECT, moved) is None, "all of it would count as changed"
    moved.rename(folder)
    assert find(run, PROJECT, folder) == found
    os.truncate(run / run_folder.BESIDE, 10)
    assert find(run, PROJECT, folder) is None
