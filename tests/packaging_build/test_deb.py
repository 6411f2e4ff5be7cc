"""The Debian package, of a small program in place of the frozen one, and the files for other systems."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from pathlib import Path
from types import ModuleType

import pytest
import yaml

from core.vocabulary.versions import TANDEM

ROOT = Path(__file__).parents[2]
ELSEWHERE = ROOT / "packaging" / "elsewhere"
TOOLS = ("dpkg-deb", "dpkg-query", "objdump")
needs_tools = pytest.mark.skipif(
    any(shutil.which(tool) is None for tool in TOOLS),
    reason=f"Debian's tools are not here: {', '.join(TOOLS)}",
)


@pytest.fixture(scope="module")
def deb() -> ModuleType:
    spec = importlib.util.spec_from_file_location("tandem_deb", ROOT / "packaging" / "deb.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A folder like the frozen program's, with one of the system's own programs as its executable."""
    folder = tmp_path / "tandem"
    (folder / "_internal").mkdir(parents=True)
    (folder / "_internal" / "module.py").write_text("")
    shutil.copy(shutil.which("tar") or "/bin/tar", folder / "tandem")
    return folder


def said(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout


@needs_tools
def test_the_package_holds_the_program_and_what_a_desktop_looks_for(
    deb: ModuleType, program: Path, tmp_path: Path
) -> None:
    file = deb.build(program, tmp_path)
    architecture = said("dpkg", "--print-architecture").strip()
    assert file.name == f"tandem-laptops_{TANDEM}_{architecture}.deb"
    inside = tmp_path / "inside"
    said("dpkg-deb", "--extract", str(file), str(inside))
    assert (inside / "usr/bin/tandem").resolve() == (inside / "usr/lib/tandem-laptops/tandem").resolve()
    assert (inside / "usr/bin/tandem-gui").readlink() == Path("../lib/tandem-laptops/tandem")
    assert (inside / "usr/lib/tandem-laptops/_internal/module.py").exists()
    entry = (inside / "usr/share/applications/tandem.desktop").read_text()
    assert "\nExec=/usr/bin/tandem-gui %f\n" in entry
    assert "\nMimeType=text/x-python;application/x-ipynb+json;\n" in entry
    for path in ("icons/hicolor/scalable/apps/tandem.svg", "metainfo/app.tandem.Tandem.metainfo.xml"):
        assert (inside / "usr/share" / path).stat().st_size
    owners = {line.split()[1] for line in said("dpkg-deb", "--contents", str(file)).splitlines()}
    assert owners == {"root/root"}


@needs_tools
def test_it_runs_nothing_but_the_profiles_scripts_when_it_is_installed_or_removed(
    deb: ModuleType, program: Path, tmp_path: Path
) -> None:
    file = deb.build(program, tmp_path)
    said("dpkg-deb", "--control", str(file), str(tmp_path / "control"))
    assert {path.name for path in (tmp_path / "control").iterdir()} == {"control", "postinst", "prerm"}
    fields = dict(re.findall(r"^([\w-]+): (.*)$", (tmp_path / "control" / "control").read_text(), re.M))
    assert fields["Version"] == TANDEM
    assert re.match(r"libc6 \(>= 2\.\d+\)", fields["Depends"])
    assert program.exists(), "what was frozen is still there"


@needs_tools
@pytest.mark.parametrize("restricts", [True, False])
def test_namespaces_are_allowed_to_the_program_where_apparmor_restricts_them(
    deb: ModuleType, program: Path, tmp_path: Path, restricts: bool
) -> None:
    """AppArmor's programs are replaced by ones that record their calls."""
    file, root, tools = deb.build(program, tmp_path), tmp_path / "root", tmp_path / "tools"
    said("dpkg-deb", "--extract", str(file), str(root))
    said("dpkg-deb", "--control", str(file), str(tmp_path / "control"))
    known = root / "etc/apparmor.d"
    known.mkdir(parents=True)
    if restricts:
        (known / "abi").mkdir()
        (known / "abi/4.0").touch()
    tools.mkdir()
    for name in ("aa-enabled", "apparmor_parser"):
        (tools / name).write_text(f'#!/bin/sh\necho {name} "$@" >> "{tmp_path}/called"\n')
        (tools / name).chmod(0o755)
    environment = {"PATH": f"{tools}:{os.environ['PATH']}", "DPKG_ROOT": str(root)}

    def run(script: str, word: str) -> list[str]:
        subprocess.run([tmp_path / "control" / script, word], env=environment, check=True, timeout=60)
        called = tmp_path / "called"
        return called.read_text().splitlines() if called.exists() else []

    called = run("postinst", "configure")
    installed = known / "tandem-laptops"
    assert installed.exists() is restricts
    if restricts:
        assert 'profile tandem "/usr/lib/tandem-laptops/tandem" flags=(unconfined)' in installed.read_text()
        assert called == ["aa-enabled --quiet", f"apparmor_parser -r {installed}"]
        run("prerm", "upgrade")
        assert installed.exists(), "the new version replaces it"
        assert run("prerm", "remove")[-1] == f"apparmor_parser -R {installed}"
    else:
        assert run("prerm", "remove") == called == []
    assert not installed.exists()


@needs_tools
def test_what_the_program_brings_is_not_asked_of_the_system(deb: ModuleType, program: Path) -> None:
    wanted = deb.needed(program)
    assert "libc.so.6" in wanted
    others = wanted - {"libc.so.6"}
    for library in others:
        (program / "_internal" / library).write_bytes(b"")
    assert deb.needed(program) == {"libc.so.6"}
    assert deb.packages({"libc.so.6", "libof.nobody.so.9"}) == {"libc.so.6": "libc6"}


@pytest.mark.parametrize("name", ["tandem.iss", "macos.sh", "app.tandem.Tandem.yaml"])
def test_what_nobody_has_tried_says_so(name: str) -> None:
    assert "NOT TRIED" in (ELSEWHERE / name).read_text(encoding="utf-8")


def test_what_the_other_recipes_name_is_there() -> None:
    inno = (ELSEWHERE / "tandem.iss").read_text(encoding="utf-8")
    assert (ELSEWHERE / re.findall(r"^LicenseFile=(.*)$", inno, re.M)[0].replace("\\", "/")).exists()
    assert "uninstall --delete-home" in inno
    script = (ELSEWHERE / "macos.sh").read_text(encoding="utf-8")
    for path in re.findall(r"\$root/(resources/[\w./-]+)", script):
        assert (ROOT / path).exists()
    manifest = yaml.safe_load((ELSEWHERE / "app.tandem.Tandem.yaml").read_text(encoding="utf-8"))
    (source,) = manifest["modules"][0]["sources"]
    assert Path(source["path"]).name == f"tandem-laptops_{TANDEM}_amd64.deb"
    assert (manifest["command"], manifest["rename-desktop-file"]) == ("tandem", "tandem.desktop")


@pytest.mark.skipif(shutil.which("sh") is None, reason="there is no sh here")
def test_the_script_for_macs_is_one() -> None:
    said("sh", "-n", str(ELSEWHERE / "macos.sh"))
