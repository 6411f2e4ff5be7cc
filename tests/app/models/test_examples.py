"""An example is copied out of the program, so that a run can write beside it."""

from pathlib import Path

import pytest

from app.models.examples import EXAMPLES, copied
from core.vocabulary.errors import TandemError


@pytest.mark.parametrize("name", EXAMPLES)
def test_each_example_has_its_script(tmp_path: Path, name: str) -> None:
    assert (copied(name, tmp_path) / f"{name}.py").is_file()


def test_what_a_run_wrote_beside_an_example_stays(tmp_path: Path) -> None:
    folder = copied("digits", tmp_path)
    (folder / "digits.keras").write_bytes(b"a model")
    (folder / "digits.py").write_text("an older version")
    copied("digits", tmp_path)
    assert (folder / "digits.keras").read_bytes() == b"a model"
    assert (folder / "digits.py").read_text() != "an older version"


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file, no folder")
    with pytest.raises(TandemError) as caught:
        copied("digits", tmp_path / "home")
    assert str(tmp_path / "home") in caught.value.what
