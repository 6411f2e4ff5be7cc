import ast

from core.script.imports import Module
from core.script.syntax import SourceTree, called


def source(text: str) -> SourceTree:
    return SourceTree(Module(path="x.py", tree=ast.parse(text)))


def meaning(text: str) -> str:
    """The value of the last line's expression."""
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


def test_circular_names_end() -> None:
    assert meaning("a = b.x\nb = a.y\na.z")
    found = source("a = b\nb = a\na.fit()")
    assert found.origins(found.calls[0].func) == {"a.fit", "b", "a"}
    assert len(list(found.parts(found.calls[0]))) < 20


def test_origins_lead_back_to_what_made_a_value() -> None:
    found = source("from sklearn.svm import SVC\nm = SVC(1)\nn = m\nn.clf.fit()")
    call = next(call for call in found.calls if called(call) == "fit")
    assert "sklearn.svm.SVC" in found.origins(call.func)


def test_the_imports_of_a_script_are_found() -> None:
    found = source("import a.b\nfrom c.d import e\nfrom .f import g\nfrom . import h")
    assert found.imports == {"a", "c"}


def values_of(text: str) -> list[str]:
    """Possible values of the last line's name."""
    found = source(text)
    last = found.nodes[0].body[-1].value  # type: ignore[attr-defined]
    return [ast.unparse(value) for value in found.values(last)]


def test_every_value_assigned_to_a_name_is_found() -> None:
    assert values_of("x = 1\nx: int = 2\nif (x := 3): pass\nwith open() as x: pass\nx") == [
        "1",
        "2",
        "3",
        "open()",
    ]
    assert values_of("x: int\nx") == ["x"]
    assert values_of("a.b = c[0] = x = 4\nx") == ["4"]
    assert values_of("1 + 1") == ["1 + 1"]


def test_a_name_that_is_assigned_a_call_means_itself() -> None:
    assert meaning("import tensorflow as tf\nm = tf.keras.Model()\nm.fit") == "m.fit"
    assert meaning("import a\nx = a.b\nx = a.c\nx.d") == "a.b.d"


def test_the_parts_of_an_expression_are_those_of_its_names_too() -> None:
    found = source("a = 1\nb = a + 2\nc = f(b)\ng(c)")
    call = next(each for each in found.calls if called(each) == "g")
    constants = {part.value for part in found.parts(call) if isinstance(part, ast.Constant)}
    assert constants == {1, 2}


def test_enclosing_nodes_come_innermost_first() -> None:
    found = source("if a:\n    f()\nelse:\n    g()")
    for name, branch in (("f", "body"), ("g", "orelse")):
        call = next(each for each in found.calls if called(each) == name)
        around = list(found.around(call))
        assert [type(parent).__name__ for parent, _ in around] == ["Expr", "If", "Module"]
        parent, child = around[1]
        assert child in getattr(parent, branch)


def test_called_gives_the_last_part_of_a_name() -> None:
    found = source("self.model.fit()\nprint()\n(lambda: 0)()")
    assert sorted(map(called, found.calls)) == ["", "fit", "print"]


def test_the_classes_of_a_module_are_found_however_deep() -> None:
    found = source("class A:\n    class B: pass\ndef f():\n    class C: pass")
    assert {each.name for each in found.classes} == {"A", "B", "C"}


def test_origins_go_through_attributes_calls_and_with() -> None:
    found = source("import tensorflow as tf\nwith tf.S().scope() as s:\n    s.m(1).fit()")
    call = next(each for each in found.calls if called(each) == "fit")
    assert found.origins(call.func) >= {"s.m", "tensorflow.S"}
