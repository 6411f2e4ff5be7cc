"""The Keras downloads that a script's text requests."""

from __future__ import annotations

import ast

import pytest

from core.script.downloads import kept_downloads
from core.script.imports import Module

IMPORTS = "import keras, tensorflow as tf\nfrom keras.datasets import mnist as digits\nURL = 'https://x.org/a/b.zip'\n"


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("keras.datasets.mnist.load_data()", "mnist.npz"),
        ("digits.load_data(path='other.npz')", "other.npz"),
        ("digits.load_data(path='../../.ssh/id_ed25519')", ""),
        ("digits.load_data('/etc/passwd')", ""),
        ("tf.keras.datasets.cifar10.load_data()", "cifar-10-batches-py-target_archive"),
        ("keras.datasets.fashion_mnist.load_data()", "fashion-mnist"),
        ("keras.utils.get_file('flowers.tgz', URL)", "flowers.tgz"),
        ("tf.keras.utils.get_file(origin=URL)", "b.zip"),
        ("keras.utils.get_file(origin=URL, extract=True)", "b.zip_archive"),
        ("keras.utils.get_file('flowers', URL, untar=True)", "flowers_archive"),
        ("keras.utils.get_file('flowers.tgz', URL, untar=True)", "flowers.tgz"),
        ("keras.utils.get_file('flowers', URL, True)", "flowers_archive"),
        (
            "keras.utils.get_file('flowers', URL, False, None, None, 'datasets', 'auto', True)",
            "flowers_archive",
        ),
        ("keras.utils.get_file('flowers', URL, untar=False)", "flowers"),
        ("keras.datasets.imdb.get_word_index()", "imdb_word_index.json"),
        ("keras.datasets.reuters.get_word_index('words.json')", "words.json"),
        ("keras.datasets.mine.get_word_index()", ""),
        ("keras.utils.get_file('x', URL, cache_subdir='models')", ""),
        ("keras.utils.get_file('x', URL, cache_subdir=name())", ""),
        ("keras.utils.get_file('x', URL, False, None, None, 'datasets', 'auto', False, 'auto', '/tmp')", ""),
        ("keras.utils.get_file('../x', URL)", ""),
        ("keras.utils.get_file('x', URL, cache_dir='/tmp')", ""),
        ("keras.utils.get_file(name(), URL2)", ""),
        ("mine.load_data()", ""),
    ],
)
def test_a_call_says_where_keras_keeps_the_file(text: str, kept: str) -> None:
    module = Module(path="train.py", tree=ast.parse(IMPORTS + text))
    assert kept_downloads([module]) == ((f"datasets/{kept}",) if kept else ())
