"""A script whose data this laptop stores in another place."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from core.project.data import read_data
from core.project.only_here import find_only_here
from core.project.scan import scan_project
from core.trainer.data_places import Places
from tests.core.project.making import write

DATA = {"~/photos": "/store/ab", "/home/anna/photos": "/store/ab", "/data": "/mnt/data"}


@pytest.mark.parametrize(
    ("text", "here"),
    [
        ("open('~/photos/1.jpg')", "open('/store/ab/1.jpg')"),
        ('Path("/home/anna/photos") / "1.jpg"', 'Path("/store/ab") / "1.jpg"'),
        ("f'/data/{name}'", "f'/mnt/data/{name}'"),
        ("rb'/data'", "rb'/mnt/data'"),
        ("'/data-2'", "'/data-2'"),
        ("'in /data'", "'in /data'"),
        ("'/home/anna/photos2'", "'/home/anna/photos2'"),
        ("'/data' '/x'", "'/mnt/data' '/x'"),
        ("'/da' 'ta/x'", "'/mnt/data/x'"),
        ('x = "a"/home/anna/photos/"b"', 'x = "a"/home/anna/photos/"b"'),
        ("'cp \"/data/x\" .'", "'cp \"/data/x\" .'"),
        ("# it's '/data'", "# it's '/data'"),
        ("é = 'é'; x = " + '"""/data/x"""', "é = 'é'; x = " + '"""/mnt/data/x"""'),
        ("open('/data", "open('/data"),
        ("f'/data{number}'", "f'/data{number}'"),
        ("'/data/%d' % number", "'/mnt/data/%d' % number"),
        ("'/data/{}'.format(number)", "'/mnt/data/{}'.format(number)"),
        ("b = '/data'\nf'{b}/{n}'", "b = '/mnt/data'\nf'{b}/{n}'"),
        ("b = '/home'\nf'{b}/anna/photos/{n!r}'", "b = '/home'\nf'/store/ab/{n!r}'"),
        ("b = '/home'\nb + '/anna/photos/' + n", "b = '/home'\n'/store/ab/' + n"),
    ],
)
def test_paths_below_the_data_folder_are_replaced(text: str, here: str) -> None:
    assert Places(DATA, Path("/work")).text(text) == here


@pytest.mark.parametrize(
    ("text", "here"),
    [
        ("Path.home() / 'photos' / '1.jpg'", "Path.home() / '/store/ab' / '1.jpg'"),
        ("pathlib.Path.home() / f'photos/{n}'", "pathlib.Path.home() / f'/store/ab/{n}'"),
        ("Path.home() / 'photos2'", "Path.home() / 'photos2'"),
        ("home / 'photos'", "home / 'photos'"),
        ("H = Path.home()\nH / 'photos'", "H = Path.home()\nH / '/store/ab'"),
        ("N = 'photos'\nPath.home() / N / '1'", "N = 'photos'\nPath.home() / '/store/ab' / '1'"),
        ("Path.home().joinpath('photos', n)", "Path.home().joinpath('/store/ab', n)"),
        ("join(expanduser('~'), 'photos', n)", "join(expanduser('~'), '/store/ab', n)"),
        ("join(expanduser('~'),  # mine\n  'photos')", "join(expanduser('~'),  # mine\n  '/store/ab')"),
        ("join('/home/anna', 'photos' + n)", "join('/home/anna', 'photos' + n)"),
        ("join('/home/anna', 'photos/' + n)", "join('/home/anna', '/store/ab/' + n)"),
        ("join('/home/anna', 'photos/%d' % n)", "join('/home/anna', '/store/ab/%d' % n)"),
        ("join('/home', ('anna'\n'/photos'), n)", "join('/home', (('/store/ab'\n)), n)"),
        ("join('/home', *['anna', 'photos'])", "join('/home', *['anna', 'photos'])"),
        ("join(x, '/data', 'y')", "join(x, '/mnt/data', 'y')"),
    ],
)
def test_paths_that_reach_it_when_joined_are_replaced(text: str, here: str) -> None:
    imports = "import pathlib\nfrom pathlib import Path\nfrom os.path import expanduser, join\n"
    assert Places(DATA, Path("/work")).text(imports + text) == imports + here


@pytest.mark.parametrize(
    ("argument", "here"),
    [
        ("/data", "/mnt/data"),
        ("--images=/home/anna/photos/cats", "--images=/store/ab/cats"),
        ("/data-2", "/data-2"),
        ("--text=see /data", "--text=see /data"),
    ],
)
def test_arguments_are_replaced(argument: str, here: str) -> None:
    assert Places(DATA, Path("/work")).argument(argument) == here


ODD = {
    "/data/photos": "/store/ab",
    "/data/photos_labels.npy": "/store/cd",
    "/glob": "/home/ben/Bilder [2024]",
    "/rate": "/store/100%",
    "/name": "/home/jürgen",
    "~/photos": "/store/ef",
}


@pytest.mark.parametrize(
    ("text", "here"),
    [
        ("ROOT + '_labels.npy'", "'/store/cd'"),
        ("ROOT + '/1.jpg'", "ROOT + '/1.jpg'"),
        ("f'{ROOT}_labels.npy'", "f'/store/cd'"),
        ("f'{ROOT}/{n}.jpg'", "f'{ROOT}/{n}.jpg'"),
    ],
)
def test_a_path_that_continues_the_text_of_another_leads_to_its_own_place(text: str, here: str) -> None:
    root = "ROOT = '/data/photos'\n"
    assert Places(ODD, Path("/work")).text(root + text) == "ROOT = '/store/ab'\n" + here


@pytest.mark.parametrize(
    "odd",
    [
        "H = os.path.expanduser('~'); S = f'/photos/{split}'; open(f'{H}{S}/1.jpg')",
        "H = '/data'; f'{H}/photos/{d[\"\u200b\"]}'",
    ],
)
def test_beside_an_expression_that_cannot_be_changed_others_are(odd: str) -> None:
    text = f"import os\n{odd}\n"
    led = Places(ODD, Path("/work")).text(f"{text}open('/data/photos/1.jpg')")
    assert led.endswith("open('/store/ab/1.jpg')")
    # From Python 3.12 on, an f-string may have a backslash in an expression, and is changed, too.
    assert led.startswith(text) or sys.version_info >= (3, 12)


@pytest.mark.parametrize(
    ("text", "here"),
    [
        ("open('/glob/1.jpg')", "open('/home/ben/Bilder [2024]/1.jpg')"),
        ("P = '/glob/*.jpg'", "P = '/home/ben/Bilder [[]2024]/*.jpg'"),
        ("f'/glob/{n}/?.jpg'", "f'/home/ben/Bilder [[]2024]/{n}/?.jpg'"),
        ("glob('/glob/' + n)", "glob('/home/ben/Bilder [[]2024]/' + n)"),
        ("join('/glob', '*.jpg')", "join('/home/ben/Bilder [[]2024]', '*.jpg')"),
        ("glob(join('/glob', n))", "glob(join('/home/ben/Bilder [[]2024]', n))"),
        ("Path('/glob').glob('*.jpg')", "Path('/home/ben/Bilder [2024]').glob('*.jpg')"),
        (
            "R = '/glob'; open(R); glob(R + '/*.jpg')",
            "R = '/home/ben/Bilder [2024]'; open(R); glob('/home/ben/Bilder [[]2024]' + '/*.jpg')",
        ),
        (
            "R = '/glob'; glob(f'{R}/{n}')",
            "R = '/home/ben/Bilder [2024]'; glob(f'/home/ben/Bilder [[]2024]/{n}')",
        ),
        (
            "R = '/glob'; join(R, '*.jpg')",
            "R = '/home/ben/Bilder [2024]'; join('/home/ben/Bilder [[]2024]', '*.jpg')",
        ),
        ("'/rate/%d' % n", "'/store/100%%/%d' % n"),
        ("open('/rate/1')", "open('/store/100%/1')"),
        ("join('/rate', '%d' % n)", "join('/store/100%', '%d' % n)"),
        ("R = '/rate'; (R + '/%d') % n", "R = '/store/100%'; ('/store/100%%' + '/%d') % n"),
        ("P = '/rate/%d'; open(P % n)", "P = '/store/100%/%d'; open('/store/100%%/%d' % n)"),
        ("'/rate/{}'.format(n)", "'/store/100%/{}'.format(n)"),
        ("open('/rate/1').read() % n", "open('/store/100%/1').read() % n"),
        ("rb'/name/x'", "b'/home/j\\xc3\\xbcrgen/x'"),
        ("b'/name/\\xff'", "b'/home/j\\xc3\\xbcrgen/\\xff'"),
    ],
)
def test_a_place_is_escaped_as_the_text_around_it_is_read(text: str, here: str) -> None:
    imports = "from glob import glob\nfrom os.path import join\nfrom pathlib import Path\n"
    assert Places(ODD, Path("/work")).text(imports + text) == imports + here


def test_a_pattern_among_the_arguments_finds_its_place() -> None:
    places = Places(ODD, Path("/work"))
    assert places.argument("--in=/glob/*.jpg") == "--in=/home/ben/Bilder [[]2024]/*.jpg"
    assert places.argument("--in=/glob/1.jpg") == "--in=/home/ben/Bilder [2024]/1.jpg"


def test_a_place_that_no_string_can_hold_changes_nothing() -> None:
    assert Places({"/data": "/mnt/it's"}, Path("/work")).text("'/data'") == "'/data'"


@pytest.mark.parametrize("path", ['/a" if ok else "/a', "/a' if ok else '/a", "/a{check()}", "/a\\"])
def test_invariant_a_path_replaces_no_code(path: str) -> None:
    for text in (f'open("{path}/1.jpg")', f"open(f'{path}')"):
        assert Places({path: "/store/ab"}, Path("/work")).text(text) == text


_LOOK = """
import inspect, sys
from core.trainer import script
script.run(__import__("pathlib").Path(sys.argv[1]), ["--in=/data"], data={"/data": "/mnt"})
arguments, found, own, *functions = sys.seen
assert (arguments, found, own) == (["--in=/mnt"], "/mnt/x", "/mnt/y"), (arguments, found, own)
# AutoGraph compiles what it traces from the source.
assert all("'/mnt/" in inspect.getsource(each) for each in functions)
print("seen")
"""


@pytest.mark.real
def test_the_script_its_modules_and_readers_of_their_text_see_the_place(tmp_path: Path) -> None:
    (tmp_path / "where.py").write_text("def find():\n    return '/data/x'\n")
    main = tmp_path / "train.py"
    main.write_text(
        "import sys\nfrom where import find\n"
        "def own():\n    return '/data/y'\n"
        "sys.seen = (sys.argv[1:], find(), own(), find, own)\n"
    )
    command = [sys.executable, "-c", _LOOK, str(main)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (done.stdout, done.stderr) == ("seen\n", "")


IMPORTS = "import argparse, glob, os, pathlib, sys\nfrom pathlib import Path\nn = 1\n"
HOME_ONES = [
    "used = '~/photos/1.jpg'\nused = os.path.expanduser(used)",
    "used = os.path.expanduser('~/photos/1.jpg')",
    "used = os.path.join(os.path.expanduser('~'), 'photos', '1.jpg')",
    "used = Path.home() / 'photos' / '1.jpg'",
    "used = str(pathlib.Path.home() / 'photos/1.jpg')",
    "used = Path('~/photos').expanduser() / f'{n}.jpg'",
    "HOME = Path.home()\nPHOTOS = HOME / 'photos'\nused = PHOTOS / '1.jpg'",
    "used = os.environ['HOME'] + '/photos/1.jpg'",
    "used = os.path.expandvars('$HOME/photos/1.jpg')",
    "used = f\"{os.path.expanduser('~')}/photos/{n}.jpg\"",
    "used = glob.glob(os.path.expanduser('~/photos/*.jpg'))[0]",
    "used = next(Path.home().joinpath('photos').glob('*.jpg'))",
]
FULL_ONES = [
    "used = '{data}/photos/1.jpg'",
    "DATA = '{data}'\nused = DATA + '/photos/1.jpg'",
    "DATA_DIR = '{data}/photos'\nused = f'{{DATA_DIR}}/{{n}}.jpg'",
    "used = os.path.join('{data}', 'photos', '%d.jpg' % n)",
    "ROOT = Path('{data}')\nTRAIN = ROOT / 'photos'\nused = TRAIN / '1.jpg'",
    "config = {{'images': '{data}/photos'}}\nused = config['images'] + '/1.jpg'",
    "used = '{data}/photos/{{}}.jpg'.format(n)",
    "used = sorted(glob.glob('{data}/photos/*.jp*g'))[0]",
    "parser = argparse.ArgumentParser()\n"
    "parser.add_argument('--images', default='{data}/photos')\n"
    "used = os.path.join(parser.parse_args([]).images, '1.jpg')",
    "class Config:\n    images = '{data}/photos'\nused = Config.images + '/1.jpg'",
    "def load(folder='{data}/photos'):\n    return os.path.join(folder, '1.jpg')\nused = load()",
    "used = os.environ.get('PHOTOS', '{data}/photos') + '/1.jpg'",
]


@pytest.mark.parametrize("text", [*HOME_ONES, *FULL_ONES])
def test_a_path_as_people_write_it_is_found_before_the_start_and_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    """Anna's laptop offers to send the data; on Ben's, whose home lies elsewhere, the script finds it."""
    homes, tmp_path = {name: tmp_path.resolve() / name for name in ("anna", "ben")}, tmp_path.resolve()
    shelf = homes["anna"] if text in HOME_ONES else tmp_path / "shelf"
    write(shelf / "photos", {"1.jpg": "Anna's", "2.jpg": "Anna's"})
    write(tmp_path / "store" / "ab", {"1.jpg": "Ben's copy"})
    homes["ben"].mkdir()
    script = homes["anna"] / "project" / "train.py"
    source = (
        IMPORTS + (text if text in HOME_ONES else text.format(data=shelf)) + "\nprint(Path(used).read_text())"
    )
    write(script.parent, {"train.py": source})

    def used(source: str, home: Path) -> str:
        names: dict[str, object] = {}
        monkeypatch.setenv("HOME", str(home))
        exec(source, names)
        return Path(str(names["used"])).read_text()

    assert used(source, homes["anna"]) == "Anna's"
    (mistake,) = find_only_here(script, scan_project(script).manifest)
    path = mistake.detail.partition("=")[2]
    assert Path(path).expanduser().is_relative_to(shelf / "photos")
    photos = read_data("photos", shelf / "photos", homes["anna"]).data
    led = Places(dict.fromkeys(photos.spellings, str(tmp_path / "store" / "ab")), script.parent)
    (shelf / "photos" / "1.jpg").unlink()
    assert used(led.text(source), homes["ben"]) == "Ben's copy"


@pytest.mark.parametrize(
    "text",
    [
        "used = os.path.join(sys.argv[1], 'photos')",
        "used = os.environ['PHOTOS'] + '/1.jpg'",
        "used = input() + '/photos'",
        "import json\nused = json.load(open('config.json'))['images']",
        "used = '/'.join(['', 'data', 'photos'])",
        "for used in map(Path, folders): pass",
    ],
)
def test_a_path_that_only_running_the_script_would_show_stays_unchanged(tmp_path: Path, text: str) -> None:
    write(tmp_path / "project", {"train.py": IMPORTS + text, "config.json": '{"images": "/data/photos"}'})
    script = tmp_path / "project" / "train.py"
    assert find_only_here(script, scan_project(script, home=tmp_path).manifest) == ()
    assert Places(DATA, tmp_path).text(text) == text
