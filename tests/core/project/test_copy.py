import errno
from pathlib import Path

import pytest

from core.project.copy import Changed, copy_project, storing
from core.vocabulary.errors import TandemError
from tests.core.project.making import content, manifest_for, write

FILES = {"train.py": b"print(1)", "data/a.csv": b"1,2,3"}
MANIFEST = manifest_for(FILES)


def test_only_what_the_manifest_names_is_copied(tmp_path: Path) -> None:
    source = write(tmp_path / "source", {**FILES, "extra.txt": b"x"})
    copy_project(MANIFEST, source, tmp_path / "copy")
    assert content(tmp_path / "copy") == FILES


@pytest.mark.parametrize("data", [b"1,2,4", b"1,2", b"1,2,3,4"], ids=["other", "shorter", "longer"])
def test_other_content_leaves_no_copy_behind(tmp_path: Path, data: bytes) -> None:
    source = write(tmp_path / "source", {**FILES, "data/a.csv": data})
    with pytest.raises(Changed) as caught:
        copy_project(MANIFEST, source, tmp_path / "copy")
    assert caught.value.path == "data/a.csv"
    assert not (tmp_path / "copy").exists()


@pytest.mark.parametrize(
    ("number", "code"),
    [(errno.ENOSPC, "disk-full"), (errno.EDQUOT, "disk-full"), (errno.EACCES, "storage-failed")],
)
def test_the_disks_refusals_become_sentences(tmp_path: Path, number: int, code: str) -> None:
    with pytest.raises(TandemError) as caught, storing(tmp_path):
        raise OSError(number, "refused")
    assert caught.value.code == code
    assert caught.value.fix
