"""Contents of the frozen program. Freezing itself takes minutes: `make dist` does and tries it."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from core.report.page import TEMPLATE

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def contents() -> ModuleType:
    spec = importlib.util.spec_from_file_location("tandem_contents", ROOT / "packaging" / "contents.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_our_folder_does_not_stand_before_the_package_of_that_name() -> None:
    assert not (ROOT / "packaging" / "__init__.py").exists()
    found = importlib.util.find_spec("packaging")
    assert found is not None
    assert found.origin is not None
    assert not Path(found.origin).is_relative_to(ROOT / "packaging")


def test_scripts_find_all_of_pythons_library(contents: ModuleType) -> None:
    modules = set(contents.stdlib_modules())
    assert {"csv", "sqlite3", "wave", "xml.dom.minidom", "concurrent.futures.process"} <= modules
    assert {name.partition(".")[0] for name in modules} <= sys.stdlib_module_names
    assert not {"idlelib", "test", "tkinter", "unittest.tests"} & modules


def test_every_module_of_the_trainer_goes_in(contents: ModuleType) -> None:
    files = (ROOT / "core" / "trainer").rglob("*.py")
    names = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__") for path in files
    }
    assert set(contents.trainer_modules(ROOT)) == names - {"core.trainer"}


def test_resources_go_in_without_what_runs_left(contents: ModuleType, tmp_path: Path) -> None:
    for name in (
        "icons/tandem.svg",
        "examples/digits/digits.py",
        "examples/digits/digits.keras",
        "__init__.py",
    ):
        path = tmp_path / "resources" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    (tmp_path / "resources/examples/digits/__pycache__").mkdir()
    (tmp_path / "resources/examples/digits/__pycache__/digits.cpython-311.pyc").touch()
    found = {(Path(source).name, place) for source, place in contents.resources(tmp_path / "resources")}
    assert found == {("tandem.svg", "resources/icons"), ("digits.py", "resources/examples/digits")}


def test_the_reports_template_goes_in(contents: ModuleType) -> None:
    places = {(Path(source), place) for source, place in contents.resources(ROOT / "resources")}
    assert (TEMPLATE, "resources/report") in places


@pytest.mark.parametrize(
    ("destination", "kept"),
    [
        ("PySide6/Qt/plugins/platforms/libqxcb.so", True),
        ("PySide6/Qt/plugins/platforms/libqoffscreen.so", True),
        ("PySide6/Qt/plugins/platforms/libqvnc.so", False),
        ("PySide6/Qt/plugins/imageformats/libqsvg.so", True),
        ("PySide6/Qt/plugins/imageformats/libqpdf.so", False),
        ("PySide6/Qt/plugins/platformthemes/libqgtk3.so", False),
        ("libgtk-3.so.0", False),
        ("libglib-2.0.so.0", True),
        ("PySide6/Qt/plugins/sqldrivers/libqsqlite.so", False),
        ("PySide6/Qt/lib/libQt6Quick.so.6", False),
        ("PySide6/Qt/lib/libQt6Widgets.so.6", True),
        ("PySide6/Qt/translations/qt_de.qm", False),
        ("tensorflow/libtensorflow_cc.so.2", True),
    ],
)
def test_only_the_parts_of_qt_that_the_window_needs_stay(
    contents: ModuleType, destination: str, kept: bool
) -> None:
    assert contents.wanted([(destination, "/somewhere", "BINARY")]) == (
        [(destination, "/somewhere", "BINARY")] if kept else []
    )
