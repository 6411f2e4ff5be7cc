"""The code in the starter's own folder is the code the others were asked about."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.trainer import agreement
from core.vocabulary.manifest import Manifest
from core.vocabulary.wire import to_json
from tests.core.project.making import manifest_for
from tests.core.trainer.attended import Attended

FILES = {"train.py": b"print('agreed')\n", "lib/model.py": b"units = 8\n"}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    for path, content in FILES.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    return folder


@pytest.fixture
def listing(tmp_path: Path) -> Path:
    manifest: Manifest = manifest_for(FILES)
    (tmp_path / "agreed.json").write_bytes(to_json(manifest))
    return tmp_path / "agreed.json"


def test_what_was_agreed_may_run_and_other_files_do_not_matter(project: Path, listing: Path) -> None:
    (project / "notes.txt").write_text("not sent")
    assert agreement.why_not(listing, project) is None


@pytest.mark.parametrize("path", list(FILES))
@pytest.mark.parametrize("content", [b"print('edited')\n", b"", None])
def test_a_file_that_changed_is_named(project: Path, listing: Path, path: str, content: bytes | None) -> None:
    (project / path).unlink()
    if content is not None:
        (project / path).write_bytes(content)
    problem = agreement.why_not(listing, project)
    assert problem is not None and problem.code == "project-changed"
    assert problem.what == f"{path} changed since the others were asked."
    assert "Press Train again" in problem.fix


@pytest.mark.cluster
@pytest.mark.timeout(600)
async def test_a_script_that_was_edited_while_the_others_were_asked_is_not_run(
    tmp_path: Path, project: Path, listing: Path
) -> None:
    (project / "train.py").write_text("print('edited')\n")
    trainer = Attended(tmp_path / "log", folder=str(project), script="train.py", agreed=str(listing))
    exit = await trainer.exit()
    assert exit.problem is not None and exit.problem.code == "project-changed"
    assert "edited" not in trainer.text()
