"""What to install: no frozen program is ever told to use pip."""

import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from core.doctor import software
from core.vocabulary import versions
from core.vocabulary.versions import difference
from tests.core.doctor.views import view
from tests.core.fake_node import VERSIONS


def test_an_installed_tandem_names_the_command() -> None:
    assert versions.install_fix("'keras==3.15.*'") == "Install it: pip install 'keras==3.15.*'"
    assert "on every laptop: pip" in versions.install_fix("x", where=" on every laptop")


def test_a_frozen_program_is_replaced_as_a_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    missing = software.check_tensorflow(view(tmp_path), replace(VERSIONS, tensorflow="2.20.1", keras=""))
    unlike = difference(VERSIONS, replace(VERSIONS, keras="3.14.0"), "other")
    assert unlike is not None
    for fix in (*(finding.fix for finding in missing), unlike.fix):
        assert "pip" not in fix
        assert "Tandem's program" in fix
