import ast

from core.project.imports import Module
from core.project.syntax import Source, called


def source(text: str) -> Source:
    return Source(Module(path="x.py", tree=ast.parse(text)))


def meaning(text: str) -> str:
    """What the last line's expression stands for."""
    found = source(text)
    return found.dotted(ast.parse(text).body[-1].value)  # type: ignore[attr-defined]


def test_a_name_is_followed_to_what_it_was_imported_as() -> None:
    assert meaning("import tensorflow as tf\ntf.keras.Model") == "tensorflow.keras.Model"
    assert meaning("from tensorflow import keras as k\nk.Model") == "tensorflow.keras.Model"
    assert meaning("import tensorflow.distribute\ntensorflow.x") == "tensorflow.x"
    assert meaning("import tensorflow as tf\nkeras = tf.keras\nkeras.Model") == "tensorflow.keras.Model"
    assert meaning("from os import environ as e\ne") == "os.environ"
    assert meaning("x.y") == "x.y"
    assert meaning("f().y") == ""


def test_names_that_go_in_circles_end() -> None:
    assert meaning("a = b.x\nb = a.y\na.z")
    found = source("a = b\nb = a\na.fit()")
    assert found.origins(found.calls[0].func) == {"a.fit", "b", "a"}
    assert len(list(found.parts(found.calls[0]))) < 20


def test_origins_lead_back_to_what_made_a_value() -> None:
    found = source("from sklearn.svm import SVC\nm = SVC(1)\nn = m\nn.clf.fit()")
    call = next(call for call in found.calls if called(call) == "fit")
    assert "sklearn.svm.SVC" in found.origins(call.func)


def test_what_a_script_imports() -> None:
    found = source("import a.b\nfrom c.d import e\nfrom .f import g\nfrom . import h")
    assert found.imports == {"a", "c"}
