"""The rules of the house, read from the source: who imports whom, how long a module is, how it is named."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LONGEST = 400
FLOORS = [
    {"core.vocabulary", "core.runtime"},
    {"core.cluster", "core.speed", "core.telemetry", "core.home"},
    {"core.project", "core.net"},
    {"core.supervisor", "core.history", "core.link", "core.pairing", "core.discovery", "core.exchange"},
    {"core.report", "core.trainer", "core.doctor"},
    {"core.run"},
    {"core.node"},
    {"app"},
    {"bench", "packaging"},
]
"""The lowest first. A room may import rooms on lower floors alone: not those beside it, not those above."""
EXACT_FLOORS = [{"interface", "members"}, {"keras"}, {"resume"}, {"steps"}, {"patch"}]
"""Within ``core.trainer.exact``, the lowest first, by the same rule."""
VAGUE = {"utils", "util", "helpers", "helper", "manager", "managers", "misc", "common"}
SOURCES = sorted([*ROOT.glob("app/**/*.py"), *ROOT.glob("core/**/*.py")])
TESTS = sorted(ROOT.glob("tests/**/*.py"))
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("resources/**/*.md")])
HEAVY = {"tensorflow", "keras", "tf_keras"}
QT = {"PySide6", "shiboken6", "pyqtgraph", "PyQt5", "PyQt6"}
HIDDEN_IMPORT = re.compile(r"^\s*(?:import|from)\s+(\w+)", re.M)


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def imported(tree: ast.AST) -> Iterator[str]:
    """The top names of every import, those within functions and inside code kept in strings included."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from (alias.name.split(".")[0] for alias in names)
            case ast.ImportFrom(module=str(module), level=0):
                yield module.split(".")[0]
            case ast.Call(
                func=ast.Name(id="__import__") | ast.Attribute(attr="import_module"), args=[first, *_]
            ):
                if isinstance(first, ast.Constant) and isinstance(first.value, str):
                    yield first.value.split(".")[0]
            case ast.Constant(value=str(text)):
                for found in HIDDEN_IMPORT.findall(text):
                    if found in HEAVY | QT:
                        yield found


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def modules_imported(path: Path) -> Iterator[str]:
    """The project's own modules that ``path`` imports, within functions and for types alone included."""
    for node in ast.walk(parsed(path)):
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names if alias.name in MODULES)
            case ast.ImportFrom(module=str(module), level=0, names=names):
                for alias in names:
                    full = f"{module}.{alias.name}"
                    if (found := full if full in MODULES else module) in MODULES:
                        yield found


def dotted(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


HOUSE = sorted([*SOURCES, *ROOT.glob("bench/**/*.py"), *ROOT.glob("packaging/**/*.py")])
MODULES = {dotted(path): path for path in HOUSE}


def room(module: str) -> str:
    """``core.link`` for ``core.link.hub``; the folder for what lies in none of core's."""
    first, *rest = module.split(".")
    return f"core.{rest[0]}" if first == "core" and rest else first


def circles(arrows: dict[str, set[str]]) -> list[set[str]]:
    """The strongly connected components of more than one node (R. Tarjan, 1972)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[set[str]] = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in arrows.get(node, ()):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            at = stack.index(node)
            if len(stack) - at > 1:
                found.append(set(stack[at:]))
            del stack[at:]

    for node in arrows:
        if node not in index:
            visit(node)
    return found


def test_circles_are_found() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}}) == [{"b", "c"}]


def test_a_room_imports_only_rooms_on_lower_floors() -> None:
    floor_of = {name: number for number, rooms in enumerate(FLOORS) for name in rooms}
    rooms = {room(module) for module in MODULES} - {"core"}
    scripts = {dotted(path) for path in ROOT.glob("packaging/*.py")}

    assert rooms == set(floor_of), "every room has its floor, and no floor has a room that is not there"
    wrong = {
        f"{module} imports {other}"
        for module, path in MODULES.items()
        if module not in scripts
        for other in modules_imported(path)
        if room(other) not in (room(module), "core") and floor_of[room(other)] >= floor_of[room(module)]
    }
    assert not wrong


def test_what_makes_training_exact_is_built_on_lower_floors() -> None:
    exact = "core.trainer.exact."
    floor_of = {name: number for number, names in enumerate(EXACT_FLOORS) for name in names}

    def part(module: str) -> str:
        return module.removeprefix(exact).partition(".")[0]

    inside = {module: path for module, path in MODULES.items() if module.startswith(exact)}
    assert {part(module) for module in inside} == set(floor_of)
    wrong = {
        f"{module} imports {other}"
        for module, path in inside.items()
        for other in modules_imported(path)
        if other.startswith(exact) and part(other) != part(module)
        if floor_of[part(other)] >= floor_of[part(module)]
    }
    assert not wrong


def test_nothing_imports_itself_in_a_circle() -> None:
    """Neither files nor folders; a folder and the one that it lies in count as one."""
    files = {module: set(modules_imported(path)) - {module} for module, path in MODULES.items()}
    folders: dict[str, set[str]] = {}
    for module, others in files.items():
        folder = module.rpartition(".")[0]
        found = folders.setdefault(folder, set())
        for other in (other.rpartition(".")[0] for other in others):
            if not f"{other}.".startswith(f"{folder}.") and not f"{folder}.".startswith(f"{other}."):
                found.add(other)

    assert not circles(files)
    assert not circles(folders)


def test_there_is_something_to_read() -> None:
    assert len(SOURCES) > 20
    assert ROOT / "core/vocabulary/state.py" in SOURCES


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("import tensorflow as tf", {"tensorflow"}),
        ("def f():\n    from keras.layers import Dense", {"keras"}),
        ("importlib.import_module('tensorflow.python')", {"tensorflow"}),
        ("__import__('PySide6')", {"PySide6"}),
        ("CODE = '''\nimport tensorflow\n'''", {"tensorflow"}),
        ("'says: import tensorflow in words'", set()),
        ("from . import keras_free", set()),
    ],
)
def test_imports_are_found_wherever_they_hide(code: str, expected: set[str]) -> None:
    assert set(imported(ast.parse(code))) & (HEAVY | QT) == expected


@pytest.mark.parametrize("path", SOURCES, ids=name)
def test_imports_go_one_way(path: Path) -> None:
    names = set(imported(parsed(path)))
    if path.is_relative_to(ROOT / "core"):
        assert "app" not in names, "core never imports app"
        assert not names & QT, "core knows no window"
    if not path.is_relative_to(ROOT / "core/trainer"):
        assert not names & HEAVY, "TensorFlow and Keras live in core/trainer only"
    assert "tests" not in names


@pytest.mark.parametrize("path", SOURCES, ids=name)
def test_a_module_is_short_and_says_what_it_answers_for(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= LONGEST
    assert not text.strip() or ast.get_docstring(parsed(path)), "a module begins with its one to three lines"


@pytest.mark.parametrize("path", [*SOURCES, *TESTS], ids=name)
def test_a_name_says_something(path: Path) -> None:
    words = {*path.relative_to(ROOT).with_suffix("").parts, *path.stem.split("_")}
    assert not words & VAGUE


@pytest.mark.parametrize("path", TESTS, ids=name)
def test_a_test_folder_is_a_package(path: Path) -> None:
    """So that two test modules may have one name."""
    assert (path.parent / "__init__.py").exists()


@pytest.mark.parametrize("path", DOCUMENTS, ids=name)
def test_documents_promise_only_what_is_there(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"\b(?:TODO|FIXME|TBD|lorem ipsum|coming soon)\b", text, re.I)
    assert not re.search(r"(?<![\w/.])/(?:work|root)/", text), "no paths of one machine"
