"""Files that a laptop copies from its own folders instead of having them sent back."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from core.project.scan import scan_project
from core.project.store import ProjectStore
from core.run.own_files import own_files
from core.vocabulary import wire
from core.vocabulary.answers import RunEntry
from core.vocabulary.manifest import Manifest
from core.vocabulary.phases import Finished
from core.vocabulary.run_folder import PLAN, PROJECT, SUMMARY
from tests.core.cluster.laptops import ANNA, BEN, CLEO, RUN, plan_of

STARTED = plan_of()
"""By Anna, with Ben."""
COMING = plan_of((BEN, ANNA), starter=BEN)


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Anna's record of that run."""
    folder, thesis = tmp_path / "runs" / RUN, tmp_path / "thesis"
    for each in (folder, thesis):
        each.mkdir(parents=True)
    (thesis / "train.py").write_text("import keras\n")
    entry = RunEntry(
        run=RUN, started_s=1.0, script="train.py", source=str(thesis / "train.py"), phase=Finished()
    )
    for name, value in ((PLAN, STARTED), (SUMMARY, entry), (PROJECT, manifest(tmp_path))):
        (folder / name).write_bytes(wire.to_json(value))
    return tmp_path / "runs"


def manifest(tmp_path: Path) -> Manifest:
    return scan_project(tmp_path / "thesis" / "train.py").manifest


def test_a_users_own_files_are_copied_while_they_are_the_same(runs: Path, tmp_path: Path) -> None:
    own, script = own_files(runs, ANNA, COMING, tmp_path / "hashes"), tmp_path / "thesis" / "train.py"
    assert list(own.values()) == [script]
    project = manifest(tmp_path)
    store = ProjectStore(tmp_path / "projects")
    receipt = store.receive(project, own=own)
    assert not receipt.wanted
    store.add(receipt)
    script.write_text("import other\n")
    assert store.read(project.digest, project.files[0]) == b"import keras\n", "no link to the user's file"
    assert ProjectStore(tmp_path / "others").receive(project, own=own).wanted


def test_invariant_only_a_laptop_that_was_in_the_run_gets_its_files_again(runs: Path, tmp_path: Path) -> None:
    """Otherwise, anyone who knows a file's hash could have their script read that file."""
    hashes = tmp_path / "hashes"
    assert not own_files(runs, ANNA, plan_of((CLEO, ANNA), starter=CLEO), hashes)
    assert not own_files(runs, ANNA, plan_of((BEN, ANNA), starter=BEN, script="other.py"), hashes)
    (runs / RUN / PLAN).write_bytes(wire.to_json(replace(STARTED, starter=BEN)))
    assert not own_files(runs, ANNA, COMING, hashes), "another laptop's run"
