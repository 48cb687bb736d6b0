"""Attributes and columns: those of the folder of outside data where it is there, else those that dpestim ships."""

import csv
import gzip
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dpestim.datasets import load_us_military, load_yrbss

#: Beside the repository; nothing is downloaded.
FOLDER = Path(__file__).parents[3] / "shared" / "data"
#: Values from the most sensitive on, an assumption of ours: having left school early; a marriage that ended.
EDUCATION = ("Preschool", "1st-4th", "5th-6th", "7th-8th", "9th", "10th", "11th", "12th", "HS-grad", "Some-college",
             "Assoc-voc", "Assoc-acdm", "Bachelors", "Masters", "Prof-school", "Doctorate")
MARITAL = ("Separated", "Divorced", "Married-spouse-absent", "Widowed", "Never-married", "Married-AF-spouse",
           "Married-civ-spouse")
#: People drawn from the shipped table of 1.4 million, as many as Adult has or so.
N_MILITARY = 50_000


@dataclass(frozen=True)
class Attribute:
    """A categorical attribute, as codes; a code is a value's place in the order of sensitivity, the highest first."""

    name: str
    values: tuple
    codes: np.ndarray  # (n, 1)

    @property
    def d(self):
        return len(self.values)

    @property
    def truth(self):
        return np.bincount(self.codes[:, 0], minlength=self.d) / len(self.codes)

    def n_high(self, percent):
        """Return how many values are high-sensitive."""
        return max(1, int(percent * self.d / 100 + 0.5))

    def low(self, percent):
        """Return the codes of the others."""
        return np.arange(self.n_high(percent), self.d)


@dataclass(frozen=True)
class Column:
    """A column of numbers, scaled to [-1, 1] by its extremes as in the paper (which is not private)."""

    name: str
    x: np.ndarray  # (n, 1)

    @property
    def mean(self):
        return self.x.mean()


def load(folder=None):
    """Return (attributes, columns, where they are from)."""
    folder = FOLDER if folder is None else Path(folder)
    adult, socr = folder / "adult_uci.csv.gz", folder / "socr_heights_weights.csv.gz"
    sources = []
    if adult.exists():
        table = _read(adult)
        attributes = [_attribute(name, table[column], order) for name, column, order in (
            ("education", "education", EDUCATION), ("marital status", "marital_status", MARITAL))]
        sources.append("UCI Adult")
    else:
        military = load_us_military(as_frame=True)  # (rows as Python objects would take seconds)
        drawn = military.frame.iloc[np.random.default_rng(0).choice(len(military.frame), N_MILITARY, replace=False)]
        attributes = [_attribute(name, drawn[name], tuple(military.categories[name].tolist()))
                      for name in ("rank", "race")]
        sources.append(f"{N_MILITARY:,} members of the US armed forces (shipped)")
    if socr.exists():
        table = _read(socr)
        columns = [_column(name, table[key]) for name, key in (("weight", "weight_lb"), ("height", "height_in"))]
        sources.append("SOCR heights and weights")
    else:
        teenagers = load_yrbss()
        columns = [_column(name, teenagers.data[:, teenagers.feature_names.index(name)])
                   for name in ("weight", "height")]
        sources.append("teenagers of the Youth Risk Behavior Surveillance System (shipped)")
    return attributes, columns, sources


def _read(path):
    """Return {column: list of texts}."""
    with gzip.open(path, "rt", newline="") as text:
        header, *rows = csv.reader(text)
    return dict(zip(header, zip(*rows)))


def _attribute(name, values, order):
    place = {value: code for code, value in enumerate(order)}
    return Attribute(name, tuple(map(str, order)), np.array([place[v] for v in values], np.int64)[:, None])


def _column(name, values):
    x = np.array(values, np.float64)
    return Column(name, np.clip(2 * (x - x.min()) / (x.max() - x.min()) - 1, -1, 1)[:, None])
