"""What a user sees before the consent: every text, what changed since the last one, and nothing hidden."""

import json
from pathlib import Path

import pytest

from core.project.look import difference, look_at, visible
from core.project.store import ProjectStore
from core.vocabulary import wire
from core.vocabulary.answers import RequestFile
from core.vocabulary.ids import ProjectId
from tests.core.project.making import manifest_for, write

OLD = {"train.py": b"import model\nepochs = 5\n", "model.py": b"# layers\n", "gone.txt": b"old\n"}
NEW = {"train.py": b"import model\nepochs = 50\n", "model.py": b"# layers\n", "new.csv": b"1,2\n"}


@pytest.fixture
def store(tmp_path: Path) -> ProjectStore:
    return ProjectStore(tmp_path / "projects")


def keep(store: ProjectStore, files: dict[str, bytes], tmp_path: Path, script: str = "train.py") -> ProjectId:
    """Stored as if received over a link."""
    manifest = manifest_for(files, script)
    write(tmp_path / "projects" / manifest.digest, dict(files))
    (tmp_path / "projects" / f"{manifest.digest}.json").write_bytes(wire.to_json(manifest))
    assert store.has(manifest.digest)
    return manifest.digest


def seen(
    store: ProjectStore, files: dict[str, bytes], approved: tuple[ProjectId, ...] = ()
) -> dict[str, RequestFile]:
    texts = {path: data for path, data in files.items() if path != "new.csv"}
    return {file.path: file for file in look_at(manifest_for(files), texts, store, approved)}


def test_the_first_time_there_is_nothing_to_compare_with(store: ProjectStore) -> None:
    found = seen(store, NEW)
    assert next(iter(found)) == "train.py"
    assert found["train.py"].text == "import model\nepochs = 50\n"
    assert {file.change for file in found.values()} == {""}
    assert found["new.csv"].text is None, "it did not come with the request"


def test_changes_since_the_last_permission_are_shown(store: ProjectStore, tmp_path: Path) -> None:
    found = seen(store, NEW, (keep(store, OLD, tmp_path),))
    assert {path: file.change for path, file in found.items()} == {
        "train.py": "changed",
        "new.csv": "new",
        "gone.txt": "gone",
        "model.py": "same",
    }
    assert "-epochs = 5\n+epochs = 50" in found["train.py"].diff
    assert found["model.py"].diff == ""


def test_the_latest_allowed_version_still_here_is_compared(store: ProjectStore, tmp_path: Path) -> None:
    older = keep(store, {**OLD, "train.py": b"epochs = 1\n"}, tmp_path)
    latest = keep(store, OLD, tmp_path)
    forgotten, another = ProjectId("e" * 64), keep(store, {"other.py": b"1"}, tmp_path, "other.py")
    found = seen(store, NEW, (forgotten, another, latest, older))
    assert "-epochs = 5" in found["train.py"].diff
    assert "-epochs = 1\n" not in found["train.py"].diff


def test_an_unchanged_file_is_shown_without_being_sent_again(store: ProjectStore, tmp_path: Path) -> None:
    before = keep(store, OLD, tmp_path)
    found = {file.path: file for file in look_at(manifest_for(OLD), {}, store, (before,))}
    assert found["train.py"].text == "import model\nepochs = 5\n"
    assert found["train.py"].change == "same"


def test_a_tampered_file_is_not_shown_as_the_allowed_version(store: ProjectStore, tmp_path: Path) -> None:
    before = keep(store, OLD, tmp_path)
    (tmp_path / "projects" / before / "train.py").write_bytes(b"import model\nepochs = 50\n")
    assert seen(store, NEW, (before,))["train.py"].diff == ""


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a = 1  # \u202egnp.tac\u2066", "a = 1  # ⟨U+202E⟩gnp.tac⟨U+2066⟩"),
        ("is\u200badmin", "is⟨U+200B⟩admin"),
        ("x = 1\rimport os", "x = 1\nimport os"),
        ("x = 1\r\ny = 2", "x = 1\ny = 2"),
        ("a\u2028b\u2029c\x85d\x0ce", "a⟨U+2028⟩b⟨U+2029⟩c⟨U+0085⟩d⟨U+000C⟩e"),
        ("\x1b[8mhidden\x1b[0m", "⟨U+001B⟩[8mhidden⟨U+001B⟩[0m"),
        ("if a == \u3164:", "if a == ⟨U+3164⟩:"),
        ("\tGrüße 笔记本 🙂", "\tGrüße 笔记本 🙂"),
    ],
)
def test_invariant_no_character_hides_or_reorders_the_shown_code(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_a_script_in_a_misleading_encoding_is_flagged(store: ProjectStore) -> None:
    """In UTF-7 a comment can contain a line of code."""
    source = b"# -*- coding: utf-7 -*-\n# +AAo-import os\n"
    assert "import os" in source.decode("utf-7").split("\n")[2]
    (found,) = look_at(manifest_for({"train.py": source}), {"train.py": source}, store, ())
    assert "utf-7" in found.note
    plain = b"# -*- coding: utf-8 -*-\n"
    (found,) = look_at(manifest_for({"train.py": plain}), {"train.py": plain}, store, ())
    assert found.note == ""


def test_a_difference_has_some_lines_around_it() -> None:
    before = "\n".join(f"line {number}" for number in range(20))
    diff = difference("train.py", before, before.replace("line 10", "line ten"))
    assert diff.split("\n") == [
        "--- train.py",
        "+++ train.py",
        "@@ -8,7 +8,7 @@",
        " line 7",
        " line 8",
        " line 9",
        "-line 10",
        "+line ten",
        " line 11",
        " line 12",
        " line 13",
    ]


def test_texts_made_to_be_slow_to_compare_are_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    before = "\n".join(["import os", *(f"{number % 150}" for number in range(3_000)), "end"])
    now = "\n".join(["import os", *(f"{number % 149}" for number in range(3_000, 0, -1)), "end"])
    monkeypatch.setattr("difflib.unified_diff", lambda *_, **__: pytest.fail("it would take long"))
    diff = difference("train.py", before, now).split("\n")
    assert diff.count(" import os") == diff.count(" end") == 1
    assert sum(line.startswith("-") for line in diff) == 3_001
    assert sum(line.startswith("+") for line in diff) == 3_001


def test_a_notebook_is_shown_as_the_code_that_runs(store: ProjectStore, tmp_path: Path) -> None:
    def notebook(epochs: int) -> bytes:
        cells = [
            {"cell_type": "markdown", "source": ["# Digits"], "metadata": {}},
            {"cell_type": "code", "source": ["!pip install keras\n", "import keras"], "metadata": {}},
            {"cell_type": "code", "source": f"model.fit(x, y, epochs={epochs})", "metadata": {}},
        ]
        return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}).encode()

    before = keep(store, {"a.ipynb": notebook(5)}, tmp_path, "a.ipynb")
    now = {"a.ipynb": notebook(50)}
    (found,) = look_at(manifest_for(now, "a.ipynb"), now, store, (before,))
    assert found.text is not None and "Digits" not in found.text and "pip" not in found.text
    assert found.text.startswith("# --- cell 1\n") and "import keras" in found.text
    assert "-model.fit(x, y, epochs=5)\n+model.fit(x, y, epochs=50)" in found.diff


def test_an_invalid_notebook_is_shown_unchanged(store: ProjectStore) -> None:
    now = {"a.ipynb": b"{}"}
    (found,) = look_at(manifest_for(now, "a.ipynb"), now, store, ())
    assert found.text == "{}"
