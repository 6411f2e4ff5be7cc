from pathlib import Path

import pytest

from core.project.only_here import CODE, find_only_here
from core.project.scan import scan_project
from core.script.syntax import Mistake
from core.vocabulary.paths import shown
from tests.core.project.making import write


def found(folder: Path, text: str, **files: str) -> tuple[Mistake, ...]:
    """In its own project: the temporary folder itself is one of those never sent."""
    project = folder / "project"
    project.mkdir()
    write(project, {"train.py": text, **{name.replace("_", "."): content for name, content in files.items()}})
    return find_only_here(project / "train.py", scan_project(project / "train.py", home=folder).manifest)


def test_a_file_outside_the_project_is_named_with_its_line(tmp_path: Path) -> None:
    elsewhere = tmp_path / "data.csv"
    elsewhere.write_text("1")
    (mistake,) = found(tmp_path, f"import keras\n\nopen({str(elsewhere)!r})\nopen({str(elsewhere)!r})\n")
    assert (mistake.code, mistake.path, mistake.line) == (CODE, "train.py", 3)
    assert shown(str(elsewhere)) in mistake.what
    assert mistake.problem.what.startswith("train.py, line 3: ")


def test_data_outside_the_project_can_be_sent(tmp_path: Path) -> None:
    photos = tmp_path / "my photos"
    photos.mkdir()
    (mistake,) = found(tmp_path, f"images = {str(photos)!r}")
    assert f"--data 'my-photos={photos}'"[:60] in mistake.fix
    assert mistake.problem.detail == f"my-photos={photos}"
    manifest = scan_project(tmp_path / "project" / "train.py", home=tmp_path).manifest
    assert find_only_here(tmp_path / "project" / "train.py", manifest, [str(photos)]) == ()


def test_a_file_to_be_written_outside_the_project_is_named(tmp_path: Path) -> None:
    (mistake,) = found(tmp_path, f"model.save(f'{tmp_path}/run-{{number}}.keras')")
    assert "run-" in mistake.what and str(tmp_path)[:30] in mistake.what


@pytest.mark.parametrize(
    "text",
    [
        "with tf.device('/cpu:0'): pass",
        "with tf.device('/job:worker/task:0'): pass",
        "keras.callbacks.RemoteMonitor(path='/publish/epoch/end/')",
        "open('/dev/null')",
        "open('/proc/cpuinfo')",
        "base + '/tmp'",
        "f'{base}/tmp'",
        "'''/tmp is where nothing lies.'''",
        "a = b'/tmp/x'",
        "'/'.join(parts)",
        "open('notes.txt')",
    ],
)
def test_texts_that_are_no_path_of_a_file_here_are_ignored(tmp_path: Path, text: str) -> None:
    assert found(tmp_path, text, notes_txt="it travels") == ()


CHECKPOINT = """
import os, keras
path = "best.keras"
if os.path.exists(path):
    model = keras.models.load_model(path)
model.fit(x, callbacks=[keras.callbacks.ModelCheckpoint(path)])
"""


def test_an_ignored_file_is_named_at_the_line_that_reads_it(tmp_path: Path) -> None:
    (mistake,) = found(tmp_path, CHECKPOINT, best_keras="a model", _gitignore="*.keras\n")
    assert mistake.line == 3
    assert "best.keras" in mistake.what and "!best.keras" in mistake.fix


def test_a_file_that_is_sent_or_does_not_exist_is_not_named(tmp_path: Path) -> None:
    assert found(tmp_path, CHECKPOINT, best_keras="a model") == ()
    (tmp_path / "later").mkdir()
    assert found(tmp_path / "later", CHECKPOINT, _gitignore="*.keras\n") == ()


def test_a_file_that_is_only_written_is_not_named(tmp_path: Path) -> None:
    text = "path = 'best.keras'\nmodel.fit(x, callbacks=[keras.callbacks.ModelCheckpoint(path)])"
    assert found(tmp_path, text, best_keras="a model", _gitignore="*.keras\n") == ()


def test_in_a_broad_folder_a_file_beside_the_script_is_reported_as_not_sent(tmp_path: Path) -> None:
    downloads = tmp_path / "Downloads"
    downloads.mkdir()
    write(downloads, {"train.py": "open('data.csv')", "data.csv": "1"})
    manifest = scan_project(downloads / "train.py", home=tmp_path).manifest
    (mistake,) = find_only_here(downloads / "train.py", manifest)
    assert "data.csv" in mistake.what


@pytest.mark.parametrize(
    ("text", "offered"),
    [
        ("open(f'{data}/photos/{number}.jpg')", ["photos={data}/photos"]),
        ("glob.glob('{data}/photos/**/*.jpg')", ["photos={data}/photos"]),
        ("tf.data.Dataset.list_files('{data}/*/*.jpg')", ["shelf={data}"]),
        ("model.save(f'{data}/run-{number}.keras')", [""]),
        ("BASE = '{data}'\nopen(BASE + '/photos/1.jpg')", ["1={data}/photos/1.jpg"]),
        ("BASE = '{data}'\nopen(BASE + '/photos')\nopen(f'{BASE}/films')", ["shelf={data}"]),
        ("BASE = '{data}'\nopen(BASE + '/photos')\nuse(BASE)", ["shelf={data}"]),
        ("open('{data}/photos')\nopen('{data}/photos/1.jpg')", ["photos={data}/photos"]),
        ("open('{data}/photos/1.jpg')\nglob('{data}/photos/*')", ["photos={data}/photos"]),
        ("glob('{data}/photos/*.jpg')\nglob('{data}/photos/*.png')", ["photos={data}/photos"]),
    ],
)
def test_the_folder_that_is_offered_is_the_one_that_is_read(
    tmp_path: Path, text: str, offered: list[str]
) -> None:
    shelf = tmp_path / "shelf"
    write(shelf, {"photos/1.jpg": "1", "films/1.mp4": "1"})
    mistakes = found(tmp_path, "import glob\n" + text.replace("{data}", str(shelf)))
    assert [each.detail for each in mistakes] == [each.replace("{data}", str(shelf)) for each in offered]


@pytest.mark.parametrize("text", ["Path.home() / name", "'~/' + name", "'{home}'", "f'{home}/{name}'"])
def test_a_home_is_never_offered_as_a_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    mistakes = found(tmp_path, "from pathlib import Path\nx = " + text.replace("{home}", str(home)))
    assert [each.detail for each in mistakes] == [""]


@pytest.mark.parametrize("text", ["'../data/1.csv'", "Path(__file__).parent.parent / 'data' / '1.csv'"])
def test_a_file_beside_the_projects_folder_is_named_with_its_whole_path(tmp_path: Path, text: str) -> None:
    write(tmp_path, {"data/1.csv": "1"})
    (mistake,) = found(tmp_path, f"from pathlib import Path\nopen({text})")
    assert "../data/1.csv is outside" in mistake.what
    assert shown(str(tmp_path / "data" / "1.csv")) in mistake.fix


def test_a_path_beside_the_script_may_be_put_together(tmp_path: Path) -> None:
    text = "import os\nfrom pathlib import Path\nopen(Path(__file__).parent / 'best.csv')"
    (mistake,) = found(tmp_path, text, best_csv="1", _gitignore="*.csv\n")
    assert "!best.csv" in mistake.fix
