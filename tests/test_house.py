"""The project's rules, checked in the source: imports, module lengths, names."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import pytest

ROOT = Path(__file__).parent.parent
LONGEST = 400
LAYERS = [
    {"core.vocabulary", "core.runtime"},
    {
        "core.cluster",
        "core.session",
        "core.speed",
        "core.telemetry",
        "core.home",
        "core.walls",
        "core.script",
    },
    {"core.project", "core.net"},
    {
        "core.supervisor",
        "core.history",
        "core.link",
        "core.pairing",
        "core.discovery",
        "core.exchange",
        "core.export",
        "core.transfer",
    },
    {"core.report", "core.trainer", "core.doctor", "core.environment", "core.sweep"},
    {"core.run"},
    {"core.node"},
    {"app"},
    {"bench", "packaging", "tandem_laptops"},
]
"""Lowest first. A package may only import packages of lower layers: not those beside it, not those above."""
EXACT_LAYERS = [{"interface", "members"}, {"keras"}, {"resume"}, {"steps"}, {"rare"}, {"patch"}]
"""Within ``core.trainer.exact``, the lowest first, by the same rule."""
FOUR_FILES = {"state", "machine", "driver", "problems"}
"""A protocol's files have the same names in each folder, and so may what is in them."""
NOUNS = {"ending", "greeting", "pairing", "planning", "smoothing", "training"}
"""Words of the field that end as participles do."""
SHORT = 50
MOST_SHORT = 30
"""Maximum number of modules with fewer lines than ``SHORT``."""
MEDIAN_LINES = range(100, 161)
NAMED_TUPLE = {"_asdict", "_fields", "_make", "_replace"}
KERAS_PRIVATE = "core/trainer/exact/keras/keras_private.py"
"""The one module whose purpose is to reach into another's privates."""
OPEN_PRIVATES = {"_MEIPASS", "_current_frames", "_exit", "_run_exitfuncs"}
"""Names of Python and PyInstaller that begin with ``_`` and have no public equal."""
COMPARISONS = {"__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"}
TASK_MAKERS = {
    "core/link/dial.py",
    "core/link/driver.py",
    "core/node/conversation.py",
    "core/node/node.py",
    "core/run/resume/driver.py",
    "core/run/resume/fetch.py",
    "core/runtime/background.py",
}
"""Allowed: tasks that end in the function that started them, and a node's own end. Only shorten this list."""
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
    """The top names of every import, including those in functions and in code kept in strings."""
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
    """The project's own modules that ``path`` imports, including in functions and for types alone."""
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


HOUSE = sorted(
    [
        *SOURCES,
        *ROOT.glob("bench/**/*.py"),
        *ROOT.glob("packaging/**/*.py"),
        *ROOT.glob("tandem_laptops/*.py"),
    ]
)
MODULES = {dotted(path): path for path in HOUSE}


def package(module: str) -> str:
    """``core.link`` for ``core.link.hub``; the folder for modules outside core's packages."""
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


def test_a_package_imports_only_packages_of_lower_layers() -> None:
    layer_of = {name: number for number, packages in enumerate(LAYERS) for name in packages}
    packages = {package(module) for module in MODULES} - {"core"}
    scripts = {dotted(path) for path in ROOT.glob("packaging/*.py")}

    assert packages == set(layer_of), (
        "every package is in a layer, and every layer has existing packages only"
    )
    wrong = {
        f"{module} imports {other}"
        for module, path in MODULES.items()
        if module not in scripts
        for other in modules_imported(path)
        if package(other) not in (package(module), "core")
        and layer_of[package(other)] >= layer_of[package(module)]
    }
    assert not wrong


def test_what_makes_training_exact_is_built_on_lower_layers() -> None:
    exact = "core.trainer.exact."
    layer_of = {name: number for number, names in enumerate(EXACT_LAYERS) for name in names}

    def part(module: str) -> str:
        return module.removeprefix(exact).partition(".")[0]

    inside = {module: path for module, path in MODULES.items() if module.startswith(exact)}
    assert {part(module) for module in inside} == set(layer_of)
    wrong = {
        f"{module} imports {other}"
        for module, path in inside.items()
        for other in modules_imported(path)
        if other.startswith(exact) and part(other) != part(module)
        if layer_of[part(other)] >= layer_of[part(module)]
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


def test_no_class_of_core_has_the_name_of_another() -> None:
    places: dict[str, set[str]] = {}
    for path in SOURCES:
        if path.is_relative_to(ROOT / "core") and path.stem not in FOUR_FILES:
            for node in parsed(path).body:
                if isinstance(node, ast.ClassDef):
                    places.setdefault(node.name, set()).add(dotted(path))
    assert not {name for name, modules in places.items() if len(modules) > 1}


def test_a_module_is_named_by_a_noun() -> None:
    participles = {
        dotted(path)
        for path in SOURCES
        if (last := path.stem.split("_")[-1]).endswith(("ing", "ed")) and last not in NOUNS
    }
    assert not participles


def test_modules_are_few_and_full() -> None:
    lengths = [
        len(path.read_text(encoding="utf-8").splitlines()) for path in SOURCES if path.stem != "__init__"
    ]
    assert len([lines for lines in lengths if lines < SHORT]) <= MOST_SHORT
    assert round(median(lengths)) in MEDIAN_LINES


def reaches(tree: ast.Module) -> list[str]:
    """Each use of a private name that does not belong to the object or class itself, modules included.

    A comparison and a class method may access other objects of their class.
    """
    found = [
        f"{node.module}.{alias.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if re.match(r"_(?!_)", alias.name)
    ]

    def visit(node: ast.AST, own: frozenset[str]) -> None:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                is_class_method = "classmethod" in map(ast.unparse, node.decorator_list)
                if is_class_method or node.name in COMPARISONS:
                    names = {child.id for child in ast.walk(node) if isinstance(child, ast.Name)}
                    own |= names | {argument.arg for argument in node.args.args}
            case ast.Attribute(value=value, attr=attr) if re.match(r"_(?!_)", attr):
                is_super = isinstance(value, ast.Call) and ast.unparse(value.func) == "super"
                is_own = is_super or (isinstance(value, ast.Name) and value.id in own)
                if not is_own and attr not in NAMED_TUPLE | OPEN_PRIVATES:
                    found.append(ast.unparse(node))
            case ast.Call(
                func=ast.Name(id="getattr" | "setattr" | "hasattr" | "delattr"),
                args=[_, ast.Constant(value=str(attr)), *_],
            ) if re.match(r"_(?!_)", attr):
                found.append(ast.unparse(node))
        for child in ast.iter_child_nodes(node):
            visit(child, own)

    visit(tree, frozenset({"self", "cls"}))
    return found


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("class A:\n    def f(self, other):\n        other._x()", ["other._x"]),
        ("class A:\n    def __init__(self, owner):\n        self._x = owner._x", ["owner._x"]),
        ("class A:\n    def f(self):\n        return self._owner._x", ["self._owner._x"]),
        ("class A:\n    def __eq__(self, other):\n        return self._x == other._x", []),
        ("class A:\n    @classmethod\n    def make(cls):\n        made = cls()\n        made._x = 1", []),
        ("class A:\n    def f(self):\n        return super()._x + cls._x", []),
        ("class A:\n    def __enter__(self):\n        other._x()", ["other._x"]),
        ("getattr(other, '_x', None)", ["getattr(other, '_x', None)"]),
        ("from core.run import runs\nruns._x()", ["runs._x"]),
        ("from core.run.runs import _x", ["core.run.runs._x"]),
        ("import os\nos._exit(1)\npoint._replace(x=1)\nthing.__dict__", []),
    ],
)
def test_a_reach_into_somebodys_privates_is_found(code: str, expected: list[str]) -> None:
    assert reaches(ast.parse(code)) == expected


def test_nobody_is_in_anothers_privates() -> None:
    found = {
        name(path): len(uses)
        for path in SOURCES
        if (uses := reaches(parsed(path))) and name(path) != KERAS_PRIVATE
    }
    assert not found


def test_tasks_have_an_owner() -> None:
    makers = {
        name(path)
        for path in SOURCES
        if path.is_relative_to(ROOT / "core")
        and re.search(r"\b(?:create_task|ensure_future)\(", path.read_text(encoding="utf-8"))
    }
    assert makers <= TASK_MAKERS


def test_whoever_leads_a_managed_run_is_asked_for_and_not_known_by_a_number() -> None:
    """Rank 0 may have left: weights given by it alone would be zeros."""
    by_number = re.compile(r"(?<!shape\.)\brank\s*[!=]=\s*0\b")
    allowed = {
        # Before the script's first line everybody is present.
        "core/trainer/session.py": ["        begins_as_chief = self._train.rank == 0"],
        # The start of rows, whoever has them.
        "core/trainer/exact/members/step.py": [
            "    return tf.where(rank == 0, tf.zeros_like(ends[0]), ends[0]), ends[1]"
        ],
    }
    found: dict[str, list[str]] = {}
    for path in sorted((ROOT / "core" / "trainer").rglob("*.py")):
        lines = [line for line in path.read_text("utf-8").splitlines() if by_number.search(line)]
        if lines:
            found[str(path.relative_to(ROOT))] = lines
    assert found == allowed


def test_no_test_patches_a_constant() -> None:
    """Limits are passed in: a patched one holds only where the code happens to read it at that moment."""
    patched: dict[str, int] = {}
    for path in TESTS:
        for node in ast.walk(parsed(path)):
            match node:
                case ast.Call(
                    func=ast.Attribute(attr="setattr"), args=[*_, ast.Constant(value=str(target)), _]
                ):
                    if re.fullmatch(r"_?[A-Z][A-Z0-9_]+", target.rpartition(".")[2]):
                        patched[name(path)] = patched.get(name(path), 0) + 1
    assert not patched


@pytest.mark.parametrize("path", TESTS, ids=name)
def test_a_test_folder_is_a_package(path: Path) -> None:
    """Allows two test modules with the same name."""
    assert (path.parent / "__init__.py").exists()


@pytest.mark.parametrize("path", DOCUMENTS, ids=name)
def test_documents_promise_only_what_is_there(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"\b(?:TODO|FIXME|TBD|lorem ipsum|coming soon)\b", text, re.I)
    assert not re.search(r"(?<![\w/.])/(?:work|root)/", text), "no paths of one machine"


STUMBLED_OVER = (
    "A bug of the house",
    "As usual for the script",
    "Asks without listening",
    "By what runs of this code",
    "gives more to compute between meetings",
    "if you trust who sends it",
    "Its own words in the log",
    "Nor does it tell what it does",
    "Nothing listens at",
    "Of a loop of the script's own",
    "Of which nodes a datagram",
    "saves calls",
    "Speed-up:",
    "What a dictionary's definition is about",
    "Whom the run waits for on",
    "With which Stop begins",
    "without sys.exit it would",
)


def test_no_sentence_that_readers_stumbled_over_returns() -> None:
    """Each has a plain one in its place."""
    found = []
    for path in (*HOUSE, *DOCUMENTS):
        text = re.sub(r'"\s*\n\s*f?"', "", path.read_text(encoding="utf-8"))
        text = " ".join(text.split())
        found += [(name(path), words) for words in STUMBLED_OVER if words in text]
    assert not found
