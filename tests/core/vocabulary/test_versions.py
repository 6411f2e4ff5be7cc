"""Differences between two laptops are named, the gravest first, with what to install."""

import platform
import sys
from importlib import metadata
from pathlib import Path

import pytest
from msgspec.structs import asdict, replace

from core.doctor import software
from core.vocabulary import versions
from core.vocabulary.versions import Versions, difference, installed, who_changes
from core.vocabulary.wire import from_json, to_json
from tests.core.doctor.views import view
from tests.core.fake_node import VERSIONS

HERE = "Press “Have the same here…” on Devices, or run: tandem environment anna"
"""The message to the laptop that changes: nothing follows the command, so that it can be copied."""


def test_laptops_that_agree_have_no_difference() -> None:
    assert difference(VERSIONS, VERSIONS, "anna") is None


def test_another_platform_or_another_tandem_of_the_same_protocol_is_no_difference() -> None:
    assert difference(VERSIONS, replace(VERSIONS, tandem="0.2.0", platform="Darwin arm64"), "anna") is None


@pytest.mark.parametrize(
    ("field", "theirs", "what"),
    [
        ("protocol", 2, "Tandem's link protocol is 1 here and 2 on anna."),
        ("python", "3.12", "Python is 3.11 here and 3.12 on anna."),
        ("tensorflow", "", "TensorFlow is 2.21.0 here and missing on anna."),
        ("keras", "3.14.0", "Keras is 3.15.1 here and 3.14.0 on anna."),
    ],
)
def test_the_difference_is_said_with_both_versions(field: str, theirs: object, what: str) -> None:
    problem = difference(VERSIONS, replace(VERSIONS, **{field: theirs}), "anna")
    assert problem is not None and problem.what == what
    assert problem.code == "versions-differ" and problem.fix


@pytest.mark.parametrize(
    ("mine", "theirs", "fix"),
    [
        ({"python": "3.9"}, {"python": "3.12"}, HERE),
        (
            {"python": "3.12"},
            {"python": "3.9"},
            "anna has the older one. Press “Have the same here…” on anna's Devices page to get Python 3.12.",
        ),
        ({"tensorflow": ""}, {"tensorflow": "2.21.0"}, HERE),
        ({"keras": "3.9.1"}, {"keras": "3.15.1"}, HERE),
        ({"keras": "3.15.1"}, {"keras": "3.9.1"}, "anna has the older one"),
        ({"keras": "3.15.1"}, {"keras": "3.15.1rc"}, "Install the same Keras on both"),
    ],
)
def test_the_older_side_is_told_how_to_get_the_newer_version_and_the_other_that_it_has_it(
    mine: dict[str, str], theirs: dict[str, str], fix: str
) -> None:
    problem = difference(replace(VERSIONS, **mine), replace(VERSIONS, **theirs), "anna")
    assert problem is not None and (problem.fix == fix if fix == HERE else fix in problem.fix)


def test_beside_a_frozen_program_the_other_laptop_changes_even_where_it_has_the_newer_one() -> None:
    ours, frozen = replace(VERSIONS, python="3.12"), replace(VERSIONS, frozen=True)
    problem = difference(ours, frozen, "anna")
    assert problem is not None and problem.fix == HERE and "3.11" in problem.what
    assert who_changes(ours, frozen) == "here"
    assert who_changes(ours, replace(frozen, frozen=False)) == "there"


def test_a_frozen_program_has_the_other_laptop_change(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    newer = replace(VERSIONS, python="3.12")
    problem = difference(VERSIONS, newer, "anna")
    assert problem is not None and "Press “Have the same here…” on anna's Devices page" in problem.fix
    both = difference(VERSIONS, replace(newer, frozen=True), "anna")
    assert both is not None and "use the same Tandem on both" in both.fix
    assert installed().frozen


def test_a_package_missing_here_is_reported() -> None:
    problem = difference(replace(VERSIONS, keras=""), VERSIONS, "anna")
    assert problem is not None and problem.what == "Keras is missing here and 3.15.1 on anna."


def test_the_first_of_several_differences_is_named() -> None:
    problem = difference(VERSIONS, replace(VERSIONS, python="3.12", keras="3.14.0"), "anna")
    assert problem is not None and problem.what.startswith("Python")


def test_what_is_installed_is_read_without_importing_it(monkeypatch: pytest.MonkeyPatch) -> None:
    here = {"tensorflow": "2.21.0"}

    def version(package: str) -> str:
        if package not in here:
            raise metadata.PackageNotFoundError(package)
        return here[package]

    monkeypatch.setattr(metadata, "version", version)
    ours = installed()
    assert (ours.tandem, ours.protocol) == (versions.TANDEM, versions.LINK_PROTOCOL)
    assert ours.python == f"{sys.version_info.major}.{sys.version_info.minor}"
    assert (ours.tensorflow, ours.keras) == ("2.21.0", "")
    assert ours.platform == f"{platform.system()} {platform.machine()}"


def test_an_installed_tandem_names_the_command() -> None:
    with_pip = f"Install it: {sys.executable} -m pip install 'keras==3.15.*'"
    assert versions.install_fix("'keras==3.15.*'") == with_pip
    assert f"on every laptop: {sys.executable}" in versions.install_fix("x", where=" on every laptop")


def test_an_environment_without_pip_is_mended_by_uv(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(versions, "find_spec", lambda name: None)
    monkeypatch.setattr(sys, "executable", "/home/a b/python")
    assert versions.install_fix("keras") == "Install it: uv pip install --python '/home/a b/python' keras"


def test_the_version_is_reported_with_what_is_under_it() -> None:
    told = versions.sentence(replace(VERSIONS, keras=""))
    assert told == "Tandem 0.1.0 (Python 3.11, TensorFlow 2.21.0, Keras missing)"


def test_a_frozen_program_is_replaced_as_a_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    missing = software.check_tensorflow(view(tmp_path), replace(VERSIONS, tensorflow="2.20.1", keras=""))
    unlike = difference(VERSIONS, replace(VERSIONS, keras="3.14.0"), "other")
    assert unlike is not None
    for fix in (*(finding.fix for finding in missing), unlike.fix):
        assert "pip" not in fix
        assert "Tandem's program" in fix


def test_an_older_tandem_does_not_ask_what_is_kept_here_and_its_own_number_is_left_alone() -> None:
    class Older(Versions, frozen=True, kw_only=True):
        keeping: int = 0

    assert from_json(to_json(installed()), Older).keeping == 0
    theirs = Older(**asdict(VERSIONS), keeping=1)
    assert from_json(to_json(theirs), Versions) == VERSIONS
