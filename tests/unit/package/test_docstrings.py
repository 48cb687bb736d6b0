"""Docstrings that are filled in: what stands for what, names that nothing explains, and texts that stand twice."""

import importlib
import inspect
import re
import textwrap
from pathlib import Path

import pytest

import dpestim
from dpestim.base import all_estimators
from dpestim.docstrings import Documented
from dpestim.docstrings.glossary import GLOSSARY

PACKAGE = Path(dpestim.__file__).parent
PLACE = re.compile(r"^ *\{\w+(?: \w+)*\}$", re.MULTILINE)


class Base(Documented):
    """Base."""

    _texts = {"bins": "    bins : int\n", "parameters": "Parameters\n----------\n{own}\n{random_state}\n\n{bins}\n"}
    _more_parameters = """
    size : int
        How many.
    """

    def fit(self, X):
        """Fit.

        {fit of rows}
        """


def test_names_stand_for_texts():
    class Other(Base):
        """Other.

        {parameters}
        Notes
        -----
        {a, b} and {x} stay.
        """

        _texts = {"bins": "bins : str\n    {n_jobs}\n"}

        def predict(self, X):
            """Predict.

            {bins}
            """

        @classmethod
        def load(cls):
            """{bins}
            """

    doc = inspect.getdoc(Other)
    assert doc.startswith("Other.\n\nParameters\n----------\nsize : int\n    How many.\nrandom_state : None, int")
    assert "\n\nbins : str\n    n_jobs : int or None, default=None\n        Threads" in doc
    assert doc.endswith("{a, b} and {x} stay.")
    assert inspect.getdoc(Other.predict).startswith("Predict.\n\nbins : str\n    n_jobs : ")
    assert "{fit of rows}" not in Base.fit.__doc__
    assert "y : ignored" in Other.fit.__doc__


def test_a_name_that_nothing_explains_is_an_error():
    class Wrong(Base):
        """Wrong.

        {no such text}
        """

    with pytest.raises(KeyError, match="no such text"):
        inspect.getdoc(Wrong)
    with pytest.raises(KeyError, match="no such text"):
        class WrongToo(Base):
            def fit(self, X):
                """Fit.

                {no such text}
                """


def test_no_docstring_of_the_package_has_an_empty_place():
    for path in PACKAGE.rglob("*.py"):
        module = importlib.import_module(".".join(("dpestim", *path.relative_to(PACKAGE).with_suffix("").parts))
                                         .removesuffix(".__init__"))
        for item in vars(module).values():
            if getattr(item, "__module__", None) == module.__name__:
                for each in (item, *(getattr(item, name) for name in vars(item) if inspect.isclass(item))):
                    doc = getattr(each, "__doc__", None)
                    assert not (isinstance(doc, str) and PLACE.search(doc)), f"{module.__name__}: {each}"


def test_what_the_glossary_says_stands_nowhere_else():
    texts = {name: text for name, text in GLOSSARY.items() if text.count("\n") > 2}
    assert len(texts) > 5
    for path in PACKAGE.rglob("*.py"):
        if path.parent.name != "docstrings":
            code = path.read_text(encoding="utf-8")
            for name, text in texts.items():
                for indent in ("", "    ", "        "):
                    again = textwrap.indent(text, indent, lambda line: line != "\n")
                    assert again not in code, f"{path.name}: write {{{name}}} in its place"


def test_all_estimators_share_their_parameters():
    for name, cls in all_estimators():
        assert issubclass(cls, Documented), name
