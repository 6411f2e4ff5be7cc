from pathlib import Path

import pytest

from core.project.scan import scan_project
from core.project.writes import only_written
from tests.core.project.making import write

SAVES = "import keras\nmodel = keras.Sequential()\nmodel.fit(1)\nmodel.save('digits.keras')\n"


def written(folder: Path, text: str, *paths: str, **modules: str) -> set[str]:
    write(folder, {"train.py": text, **{f"{name}.py": content for name, content in modules.items()}})
    return set(only_written(folder / "train.py", paths or ("digits.keras",)))


@pytest.mark.parametrize(
    "use",
    [
        "model.save('digits.keras')",
        "model.save('./digits.keras')",
        "model.save(filepath=Path(__file__).parent / 'digits.keras')",
        "model.save(os.path.join(here, 'digits.keras'))",
        "model.save(f'{here}/digits.keras')",
        "keras.saving.save_model(model, 'digits.keras')",
        "model.fit(x, callbacks=[keras.callbacks.ModelCheckpoint('digits.keras')])",
        "OUT = 'digits.keras'\nmodel.save(OUT)\nprint(f'saved as {OUT}')",
        "model.save('digits.keras')\nprint('digits.keras is there')\nprint('digits.keras')",
        "open('digits.keras', 'wb').write(b'')",
        "with open('digits.keras', mode='w') as file: pass",
        "Path('digits.keras').write_bytes(b'')",
        "Path('digits.keras').open('w')",
        "'''It leaves digits.keras.'''\nmodel.save('digits.keras')",
        "model.save('digits.keras')\nother = keras.models.load_model('base.keras')",
        "model.save('digits.keras')\nx = keras.utils.image_dataset_from_directory('photos')",
    ],
)
def test_what_a_script_only_writes(tmp_path: Path, use: str) -> None:
    assert written(tmp_path, use) == {"digits.keras"}


@pytest.mark.parametrize(
    "use",
    [
        "",
        "model.save('other.keras')",
        "model.save(name)",
        "model.save(f'{name}.keras')",
        "model = keras.models.load_model('digits.keras')",
        "if not os.path.exists('digits.keras'): model.save('digits.keras')",
        "OUT = 'digits.keras'\nif Path(OUT).exists(): load_model(OUT)\nmodel.save(OUT)",
        "OUT: str = 'digits.keras'\nmodel.save(OUT)",
        "OUT = 'digits.keras'",
        "parser.add_argument('--out', default='digits.keras')\nmodel.save(parser.parse_args().out)",
        "model.save('digits.keras')\nload_model(f'{name}.keras')",
        "model.save('digits.keras')\nload_model(name + '.keras')",
        "model.save('digits.keras')\nload_model('digits.%s' % kind)",
        "model.save('digits.keras')\nload_model('{}.keras'.format(name))",
        "model.save('digits.keras')\nload_model(Path(name).with_suffix('.keras'))",
        "model.save('digits.keras')\ndata = tf.data.Dataset.list_files('*.keras')",
        "model.save('digits.keras')\nfor path in Path('.').glob(pattern): load_model(path)",
        "model.save('digits.keras')\nfor name in os.listdir(here): load_model(name)",
        "model.save('digits.keras')\nx = keras.utils.image_dataset_from_directory('.')",
        "model.save('digits.keras')\nx = keras.utils.image_dataset_from_directory(folder)",
        "import subprocess\nmodel.save('digits.keras')",
        "import importlib.util\nmodel.save('digits.keras')",
        "model.save('digits.keras')\nexec(code)",
        "model.save('digits.keras', overwrite=False)",
        "keras.callbacks.CSVLogger('digits.keras', append=True)",
        "keras.callbacks.CSVLogger('digits.keras', ',', True)",
        "table.to_csv('digits.keras', mode='a')",
        "open('digits.keras', 'a')",
        "open('digits.keras', 'r+')",
        "open('digits.keras', 'x')",
        "open('digits.keras', mode)",
        "open('digits.keras')",
        "files = {'model': 'digits.keras'}\nmodel.save('digits.keras')",
        "model.save('digits.keras'.replace('d', 'D'))",
        "def (:",
    ],
)
def test_in_any_doubt_it_counts_as_read(tmp_path: Path, use: str) -> None:
    assert written(tmp_path, use) == set()


def test_every_module_of_the_project_counts(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    (tmp_path / "c").mkdir()
    assert written(tmp_path / "a", "import part\n" + SAVES, part="x = 1") == {"digits.keras"}
    assert written(tmp_path / "b", "import part\n" + SAVES, part="load_model('digits.keras')") == set()
    there = "from part import OUT\nmodel.save(OUT)"
    assert written(tmp_path / "c", there, part="OUT = 'digits.keras'\nmodel.save(OUT)") == set()
    assert written(tmp_path / "c", "import part\n" + SAVES, part="def (:") == set()


def test_a_file_in_a_folder_is_not_where_the_folder_is_read(tmp_path: Path) -> None:
    saves = "os.makedirs('out', exist_ok=True)\nmodel.save('out/digits.keras')\n"
    assert written(tmp_path, saves, "out/digits.keras") == {"out/digits.keras"}
    assert written(tmp_path, saves + "read('out')", "out/digits.keras") == set()
    assert written(tmp_path, saves + "read('out/')", "out/digits.keras") == set()


def test_plots_that_tandem_saved_are_none_of_the_scripts_own_files(tmp_path: Path) -> None:
    plots = ("train-plot-1.png", "train-plot-12.png")
    others = ("other-plot-1.png", "train-plot-x.png", "old/train-plot-1.png")
    assert written(tmp_path, "plt.show()", *plots, *others) == set(plots)
    assert written(tmp_path, "read('train-plot-1.png')", *plots) == {"train-plot-12.png"}


def test_code_and_what_the_arguments_name_travel(tmp_path: Path) -> None:
    assert written(tmp_path, "Path('part.py').write_text('x = 1')", "part.py") == set()
    write(tmp_path, {"train.py": SAVES})
    files = ("digits.keras",)
    assert only_written(tmp_path / "train.py", files, ["--epochs", "3"]) == {"digits.keras"}
    assert only_written(tmp_path / "train.py", files, ["--load=digits.keras"]) == set()


def test_what_a_run_left_makes_no_other_project_of_the_next_one(tmp_path: Path) -> None:
    write(tmp_path, {"train.py": SAVES, "data.csv": "1"})
    before = scan_project(tmp_path / "train.py").manifest
    write(tmp_path, {"digits.keras": "a model", "train-plot-1.png": "a plot"})
    after = scan_project(tmp_path / "train.py")
    assert after.manifest.digest == before.digest
    assert [(left.path, left.why) for left in after.skipped] == [
        ("digits.keras", "the script only writes it"),
        ("train-plot-1.png", "the script only writes it"),
    ]
    named = scan_project(tmp_path / "train.py", arguments=("--from", "digits.keras")).manifest
    assert "digits.keras" in {file.path for file in named.files}
    write(tmp_path, {".tandemignore": "!digits.keras\n"})
    assert "digits.keras" in {file.path for file in scan_project(tmp_path / "train.py").manifest.files}


@pytest.mark.parametrize(
    "script", sorted(Path("resources/examples").rglob("*.py")), ids=lambda path: path.name
)
def test_the_examples_can_be_trained_twice_without_a_question(tmp_path: Path, script: Path) -> None:
    """What each saves is seen as that, and nothing that it reads."""
    saved = [line.split('"')[1] for line in script.read_text().splitlines() if ".save(" in line]
    assert len(saved) == 1
    beside = [str(path.relative_to(script.parent)) for path in script.parent.rglob("*") if path.is_file()]
    assert only_written(script, [*saved, *beside]) == set(saved)
