"""The commands that make an environment, its location, and what cannot be made."""

from __future__ import annotations

import dataclasses
import re
import shlex
import sys
from importlib import metadata
from pathlib import Path

import pytest
from msgspec.structs import replace

from core.environment.recipe import Recipe, WantedVersions, can_make, extras_here, recipe
from core.supervisor.spawn import PROBE_ARGUMENT
from core.vocabulary.environments import DISTRIBUTION, EnvironmentMaker
from core.vocabulary.errors import TandemError
from tests.core.fake_node import VERSIONS

PYTHONS = {"3.12": "/usr/bin/python3.12"}
CHECKOUT = EnvironmentMaker(checkout="/home/a b/tandem", source="/home/a b/tandem", pythons=PYTHONS)
INSTALLED = EnvironmentMaker(source="file:///home/a/t.whl", pythons=PYTHONS)
THEIRS = replace(VERSIONS, python="3.12")

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="another folder for programs, other quotes")


def made(
    maker: EnvironmentMaker, wanted: WantedVersions | None = None, extras: tuple[str, ...] = ()
) -> Recipe:
    return recipe(maker, wanted or WantedVersions("3.12"), VERSIONS, extras=extras)


def test_an_interpreter_that_is_here_makes_it_and_its_pip_fills_it() -> None:
    folder = "/home/a b/tandem/.venv-3.12"
    make, _, fill, load = made(CHECKOUT, extras=("gpu",)).steps
    assert load.command == (f"{folder}/bin/tandem", PROBE_ARGUMENT), "and that it works is tried"
    assert make.command == ("/usr/bin/python3.12", "-m", "venv", folder)
    assert shlex.split(str(fill)) == [
        *(f"{folder}/bin/python", "-m", "pip", "install", "--constraint", f"{folder}/constraints.txt"),
        *("--editable", "/home/a b/tandem[gpu]"),
    ]


def test_an_installed_tandem_is_installed_from_the_same_source() -> None:
    def source(maker: EnvironmentMaker, *extras: str) -> str:
        return made(maker, extras=extras).steps[-2].command[-1]

    assert source(INSTALLED) == "tandem-laptops @ file:///home/a/t.whl"
    assert source(INSTALLED, "tensorboard") == "tandem-laptops[tensorboard] @ file:///home/a/t.whl"
    named = dataclasses.replace(CHECKOUT, source="/home/a/t.whl")
    assert source(named) == "/home/a/t.whl"
    assert "--editable" not in made(named).steps[-2].command, "a wheel that was named"
    assert made(INSTALLED).folder == Path.home() / "tandem-python3.12"


def test_invariant_tandem_is_never_installed_by_its_bare_name() -> None:
    """A stranger could own that name in the index."""
    with pytest.raises(TandemError) as refused:
        made(EnvironmentMaker(pythons=PYTHONS))
    assert refused.value.code == "environment-unknown-source" and "--source" in refused.value.fix
    for maker in (CHECKOUT, INSTALLED, EnvironmentMaker(source="/a.whl", uv=True)):
        for extras in ((), ("gpu",)):
            source = made(maker, extras=extras).steps[-2].command[-1]
            assert source.partition("[")[0] != DISTRIBUTION or " @ " in source


def test_uv_fetches_a_python_that_is_not_here() -> None:
    maker = EnvironmentMaker(source="/a.whl", uv=True)
    fetch, hashed, fill, _ = made(maker).steps
    assert hashed.command[:4] == ("uv", "pip", "install", "--python")
    assert fetch.command[:2] == ("uv", "venv") and "3.12" in fetch.command
    assert fill.command[:4] == ("uv", "pip", "install", "--python")
    assert "--seed" in fetch.command, "a pip for what scripts import besides"
    assert made(maker).install == f"{made(maker).python} -m pip install"


@pytest.mark.real
def test_uv_makes_it_where_the_interpreter_that_is_here_cannot(tmp_path: Path) -> None:
    """Debian's Python without its venv package."""
    bare = tmp_path / "python3.12"
    bare.write_text("#!/bin/sh\necho \"ModuleNotFoundError: No module named 'ensurepip'\" >&2\nexit 1\n")
    bare.chmod(0o755)
    assert can_make(sys.executable) and not can_make(str(bare)) and not can_make("/nowhere/python3.12")
    maker = EnvironmentMaker(source="/a.whl", pythons={"3.12": str(bare)}, uv=True)
    other = recipe(maker, WantedVersions("3.12"), VERSIONS, able=can_make)
    assert other.steps[0].command[:2] == ("uv", "venv")


def test_the_command_that_starts_it_is_for_a_shell() -> None:
    tandem = "'/home/a b/tandem/.venv-3.12/bin/tandem'"
    assert made(CHECKOUT).start() == tandem
    assert made(CHECKOUT).start(home="/my home") == f"{tandem} --home '/my home'"


def test_where_uv_is_missing_too_it_is_fetched_into_the_environment() -> None:
    uv, fetch, *_ = made(EnvironmentMaker(source="/a.whl")).steps
    folder = Path.home() / "tandem-python3.12"
    assert uv.command[:6] == (sys.executable, "-m", "pip", "install", "--target", str(folder / "uv"))
    assert "--require-hashes" in uv.command
    version, *hashes = Path(uv.command[-1]).read_text().replace("\\\n", "").split()
    assert version.startswith("uv==") and len(hashes) > 10
    assert all(re.fullmatch("--hash=sha256:[0-9a-f]{64}", each) for each in hashes)
    assert fetch.command[0] == str(folder / "uv" / "bin" / "uv")


def test_the_same_python_with_another_tensorflow_is_made_by_this_python() -> None:
    wanted = WantedVersions.like(replace(VERSIONS, tensorflow="2.21.1"))
    other = made(CHECKOUT, wanted)
    assert other.folder.name == ".venv-3.11-tensorflow2.21.1"
    assert other.steps[0].command[0] == sys.executable


def test_the_versions_are_those_that_tandem_is_tested_with_except_for_wanted_ones() -> None:
    pinned = made(CHECKOUT).constraints.splitlines()
    assert "keras==3.15.1" in pinned and "tensorflow==2.21.0" in pinned
    other = made(CHECKOUT, WantedVersions("3.12", tensorflow="2.21.1")).constraints.splitlines()
    assert set(other) - set(pinned) == {"tensorflow==2.21.1"}
    assert set(pinned) - set(other) == {"tensorflow==2.21.0"}


def test_packages_are_installed_by_hash_except_for_a_wanted_version_that_is_not_known() -> None:
    recipe = made(CHECKOUT)
    hashed = recipe.steps[1].command
    assert "--require-hashes" in hashed and hashed[-1] == str(recipe.folder / "packages.txt")
    lines = recipe.packages.replace("\\\n", "").splitlines()
    names = {line.split("==")[0] for line in lines}
    assert {"tensorflow", "keras", "numpy", "msgspec"} <= names
    pinned = set(recipe.constraints.replace("_", "-").lower().splitlines())
    for line in lines:
        name, _, version = line.split()[0].partition("==")
        # `pip freeze` omits the packages that install packages.
        known = f"{name}=={version}" in pinned or name in ("setuptools", "wheel")
        assert known, "another version than Tandem is tested with"
        hashes = re.findall(r"--hash=\S+", line)
        assert hashes and all(re.fullmatch("--hash=sha256:[0-9a-f]{64}", each) for each in hashes)
    assert "://" not in recipe.packages
    same = made(CHECKOUT, WantedVersions("3.12", tensorflow="2.21.0")).packages
    assert same == recipe.packages
    other = made(CHECKOUT, WantedVersions("3.12", tensorflow="2.21.1")).packages
    assert "tensorflow==" not in other and "keras==" in other


def test_wanted_versions_are_listed_in_words() -> None:
    assert str(WantedVersions("3.12")) == "Python 3.12"
    assert str(WantedVersions.like(THEIRS)) == "Python 3.12, TensorFlow 2.21.0 and Keras 3.15.1"


@pytest.mark.parametrize(
    ("wanted", "code"),
    [
        (WantedVersions("3.14"), "environment-no-such-python"),
        (WantedVersions("3.12; rm -rf ~"), "environment-no-such-python"),
        (WantedVersions("3.12", tensorflow="2.22.0"), "environment-other-release"),
        (WantedVersions("3.12", keras="3.15.1 --pre"), "environment-other-release"),
        (WantedVersions("3.12", keras="3.15.1\nevil"), "environment-other-release"),
        (WantedVersions("3.12", keras="3.15.2rc1"), "environment-other-release"),
        (WantedVersions("3.12", tensorflow="2.21.1-dev20261101"), "environment-other-release"),
        (WantedVersions("3.12", tensorflow="2.21.0+evil"), "environment-other-release"),
        (WantedVersions("3.12", tensorflow="2.21...-"), "environment-other-release"),
        (WantedVersions("3.12", tensorflow="2.21.01"), "environment-other-release"),
        (WantedVersions("3.12", tensorflow="2.21.99999"), "environment-other-release"),
    ],
)
def test_unsupported_versions_are_refused_whoever_asks(wanted: WantedVersions, code: str) -> None:
    with pytest.raises(TandemError) as refused:
        made(CHECKOUT, wanted)
    assert refused.value.code == code and refused.value.fix


def test_a_frozen_program_makes_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    with pytest.raises(TandemError, match="its own Python"):
        made(CHECKOUT)


def test_the_extras_of_this_environment_are_found_by_their_packages() -> None:
    def version(package: str) -> str:
        if package != "tensorboard":
            raise metadata.PackageNotFoundError(package)
        return "2.21.0"

    assert extras_here(version) == ("tensorboard",)


def test_with_a_graphics_card_it_is_larger() -> None:
    plain, gpu = made(CHECKOUT), made(CHECKOUT, extras=("gpu",))
    assert gpu.download_bytes > plain.download_bytes and gpu.disk_bytes > plain.disk_bytes
