import time
from collections.abc import Callable
from pathlib import Path

import pytest

from core.project.scan import scan_project
from core.runtime.regular_file import READ_BYTES
from core.script.mentions import named_in_texts
from core.script.writes import only_written
from tests.core.project.making import write

SAVES = "import keras\nmodel = keras.Sequential()\nmodel.fit(1)\nmodel.save('digits.keras')\n"


EVERYDAY = """
import os
from pathlib import Path
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"
HERE = Path(__file__).resolve().parent
OUT = HERE / "out"
OUT.mkdir(exist_ok=True)
callbacks = [
    keras.callbacks.ModelCheckpoint(str(OUT / "best.keras"), mode="max", save_best_only=True),
    keras.callbacks.CSVLogger(OUT / "log.csv"),
    keras.callbacks.TensorBoard(log_dir="logs/" + now().strftime("%Y%m%d-%H%M%S")),
]
model.save(OUT / "end.keras")
plt.savefig("loss.png")
os.makedirs("tables", exist_ok=True)
with open("tables/history.json", "w") as file:
    json.dump(history, file)
table.to_csv(os.path.join("tables", "test.csv"), index=False)
np.savez(f"{HERE}/weights.npz", w=weights)
"""


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
        "import os\nos.environ['KERAS_BACKEND'] = 'tensorflow'\nmodel.save('digits.keras')",
        "import os\nos.environ.setdefault('KERAS_BACKEND', 'tensorflow')\nmodel.save('digits.keras')",
        "import os\nif 'TF_CONFIG' not in os.environ: print(1)\nmodel.save('digits.keras')",
        "model.save('digits.keras')\nname = name.replace('a', 'b')\nother = model.copy()",
        "model.save('digits.keras')\ntable = table.rename(columns=names).replace({'a': 'b'})",
        "OUT = Path('digits.keras')\nOUT.parent.mkdir(exist_ok=True)\nmodel.save(OUT)",
        "HERE = os.path.dirname(__file__)\nmodel.save(HERE + '/digits.keras')",
        "tf.saved_model.save(model, 'digits.keras')",
        "model.save('digits.keras')\nTensorBoard('logs/' + now().strftime('%Y%m%d-%H%M%S'))",
        "keras.utils.plot_model(model, to_file='digits.keras')",
        "gzip.open('digits.keras', 'wt')",
    ],
)
def test_files_that_a_script_only_writes_are_found(tmp_path: Path, use: str) -> None:
    assert written(tmp_path, use) == {"digits.keras"}


def test_what_an_everyday_script_leaves(tmp_path: Path) -> None:
    in_out = [f"out/{name}" for name in ("best.keras", "log.csv", "end.keras")]
    left = [*in_out, "loss.png", "tables/history.json", "tables/test.csv", "weights.npz"]
    others = ["end.keras", "test.csv", "out/weights.npz", "data/loss.png"]
    assert written(tmp_path, EVERYDAY, *left, *others) == set(left)


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
        "import os\nmodel.save('digits.keras')\nload_model(os.environ['BASE'])",
        "from os import environ as given\nmodel.save('digits.keras')\nload_model(given.get('BASE'))",
        "model.save('digits.keras')\nload_model(os.getenv('BASE'))",
        "model.save('digits.keras')\nload_model(input('Which? '))",
        "model.save('digits.keras')\nshutil.copytree('.', other)",
        "model.save('digits.keras')\nshutil.make_archive(name, 'zip')",
        "import shutil\nmodel.save('digits.keras')\nshutil.copy(best, 'base.keras')",
        "from shutil import move as go\nmodel.save('digits.keras')\ngo(best, 'base.keras')",
        "import os\nmodel.save('digits.keras')\nos.rename(best, other)",
        "import os\nmodel.save('digits.keras')\nos.execvp(program, words)",
        "import os\nmodel.save('digits.keras')\nos.spawnl(os.P_WAIT, program)",
        "model.save('digits.keras')\nbest.replace(other)",
        "model.save('digits.keras')\nbest.rename(target=other)",
        "Path('notes.txt').write_text('digits.keras')",
        "model.save('digits.keras')\nPath('notes.txt').write_text('digits.keras')",
        "np.savez('all.npz', name='digits.keras')",
        "open('notes.txt', 'w', 'digits.keras')",
        "model.save(Path('digits.keras').stem + '.h5')",
        "Path('digits.keras').parent.mkdir()",
        "model.save('digits.keras')\nload_model('Digits.keras')",
        "model.save('../digits.keras')",
        "model.save(Path(__file__).parent.parent / 'digits.keras')",
        "model.save('/digits.keras')",
        "OUT = 'digits.keras'\n" + "model.save(OUT)\n" * 40,
    ],
)
def test_a_doubtful_file_counts_as_read(tmp_path: Path, use: str) -> None:
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


@pytest.mark.parametrize(
    "use",
    [
        "table.to_csv('out/train.csv')",
        "table.to_csv(Path(__file__).parent / 'out' / 'train.csv')",
        "OUT = Path('out')\ntable.to_csv(OUT / 'train.csv')",
        "OUT = 'out'\ntable.to_csv(os.path.join(OUT, 'train.csv'))",
        "OUT = 'out'\ntable.to_csv(f'{OUT}/train.csv')",
    ],
)
def test_a_file_of_the_same_name_elsewhere_is_another(tmp_path: Path, use: str) -> None:
    everywhere = ("train.csv", "data/train.csv", "out/train.csv", "out/old/train.csv")
    assert written(tmp_path, use, *everywhere) == {"out/train.csv"}
    assert written(tmp_path, "table.to_csv('train.csv')", *everywhere) == {"train.csv"}
    assert written(tmp_path, use + "\nread('data/train.csv')", *everywhere) == set()


@pytest.mark.parametrize(
    ("name", "content", "stays"),
    [
        ("config.json", b'{"init": "digits.keras"}', False),
        ("settings/base.YAML", b"init: ./models/DIGITS.keras\n", False),
        ("table.csv", b"1,2\n" * 500_000 + b"digits.keras", False),
        ("table.csv", b"1" * (READ_BYTES - 6) + b"digits.keras", False),
        ("table.csv", b"1,2\n" * 500_000, True),
        ("config.json", '{"init": "digits.keras"}'.encode("utf-16"), False),
        ("config.json", b'{"init": "base.keras"}', True),
        ("photo.png", b"digits.keras", True),
    ],
)
def test_a_file_named_in_a_text_that_is_sent_counts_as_read(
    tmp_path: Path, name: str, content: bytes, stays: bool
) -> None:
    write(tmp_path, {"train.py": SAVES, name: content})
    files = ("digits.keras", name)
    assert only_written(tmp_path / "train.py", files) == ({"digits.keras"} if stays else set())
    assert only_written(tmp_path / "train.py", files[:1], others=files[1:]) == (
        {"digits.keras"} if stays else set()
    )


def test_a_text_that_is_not_sent_does_not_count(tmp_path: Path) -> None:
    write(tmp_path, {"train.py": SAVES + "open('log.txt', 'w')\n", "log.txt": "saved digits.keras"})
    files = ("digits.keras", "log.txt")
    assert only_written(tmp_path / "train.py", files) == set(files)
    write(tmp_path, {"config.json": '["log.txt"]'})
    assert only_written(tmp_path / "train.py", (*files, "config.json")) == set()


def test_non_ascii_letters_may_be_encoded_differently(tmp_path: Path) -> None:
    write(tmp_path, {"train.py": "model.save('modèle.keras')", "config.json": '["mod\\u00e8le.keras"]'})
    assert only_written(tmp_path / "train.py", ("modèle.keras", "config.json")) == set()
    write(tmp_path, {"config.json": '["base.keras"]'})
    assert only_written(tmp_path / "train.py", ("modèle.keras", "config.json")) == {"modèle.keras"}


def test_files_count_as_read_if_there_is_too_much_text_to_search(tmp_path: Path) -> None:
    write(tmp_path, {"table.csv": "1,2\n" * 100})
    saved = {"digits.keras": "digits.keras"}
    assert named_in_texts(tmp_path, saved, ["table.csv"], most_compared=400) == set()
    assert named_in_texts(tmp_path, saved, ["table.csv"], most_compared=399) == {"digits.keras"}


@pytest.mark.parametrize(
    "text",
    [
        lambda lines: "A = 'text'\n" * 2 * lines,
        lambda lines: "A = 'text'\n" * lines + "print(A)\n" * lines,
        lambda lines: "\n".join(f"A{n} = 'text{n}'\nmodel.save(A{n})" for n in range(lines)),
    ],
)
def test_a_long_script_takes_no_longer_than_its_length(tmp_path: Path, text: Callable[[int], str]) -> None:
    def spent_s(lines: int) -> float:
        begun_s = time.process_time()
        assert written(tmp_path, text(lines) + "\nmodel.save('digits.keras')") == {"digits.keras"}
        return time.process_time() - begun_s

    short_s, long_s = (min(spent_s(lines) for _ in range(3)) for lines in (300, 3000))
    assert long_s < 30 * short_s, "ten times as long; a hundred times the time would be its square"


def test_plots_that_tandem_saved_are_none_of_the_scripts_own_files(tmp_path: Path) -> None:
    plots = ("train-plot-1.png", "train-plot-12.png")
    others = ("other-plot-1.png", "train-plot-x.png", "old/train-plot-1.png")
    assert written(tmp_path, "plt.show()", *plots, *others) == set(plots)
    assert written(tmp_path, "read('train-plot-1.png')", *plots) == {"train-plot-12.png"}


@pytest.mark.parametrize(
    ("use", "stays"),
    [
        ("keras.callbacks.TensorBoard('logs')", True),
        ("keras.callbacks.TensorBoard(log_dir='logs/fit/' + datetime.now().isoformat())", True),
        ("LOGS = f'logs/{name}'\nkeras.callbacks.TensorBoard(LOGS)", True),
        ("tf.summary.create_file_writer('logs')", True),
        ("keras.callbacks.TensorBoard('logs')\nread_back('logs')", False),
        ("keras.callbacks.TensorBoard('logs')\nshutil.rmtree('logs')", False),
        ("keras.callbacks.TensorBoard('logs')\nos.walk(folder)", False),
    ],
)
def test_files_for_tensorboard_are_not_read_by_the_script(tmp_path: Path, use: str, stays: bool) -> None:
    events = "logs/fit/2026/train/events.out.tfevents.1795401195.anna.1.0.v2"
    assert written(tmp_path, use, events, "logs/notes.txt") == ({events} if stays else set())


def test_code_and_files_named_in_arguments_are_sent(tmp_path: Path) -> None:
    assert written(tmp_path, "Path('part.py').write_text('x = 1')", "part.py") == set()
    write(tmp_path, {"train.py": SAVES})
    files = ("digits.keras",)
    assert only_written(tmp_path / "train.py", files, ["--epochs", "3"]) == {"digits.keras"}
    assert only_written(tmp_path / "train.py", files, ["--load=digits.keras"]) == set()
    assert only_written(tmp_path / "train.py", files, ["--load=Digits.keras"]) == set()
    events = ("logs/events.out.tfevents.1.anna",)
    assert only_written(tmp_path / "train.py", events) == set(events)
    assert only_written(tmp_path / "train.py", events, ["--data", "logs"]) == set()


def test_outputs_of_a_run_do_not_change_the_next_runs_project(tmp_path: Path) -> None:
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
    """Each saved file is recognised as such, and nothing that the examples read."""
    saved = [line.split('"')[1] for line in script.read_text().splitlines() if ".save(" in line]
    assert len(saved) == 1
    beside = [str(path.relative_to(script.parent)) for path in script.parent.rglob("*") if path.is_file()]
    assert only_written(script, [*saved, *beside]) == set(saved)
