"""Loaders of the shipped tables; nothing is downloaded."""

import csv
import gzip
from importlib.resources import files

import numpy as np
from sklearn.utils import Bunch

from dpestim.inputs.domain import Categories, Domain, Numbers

#: The public domain of each column of the military table: the source's code book, not what the rows happen to hold.
US_MILITARY_CATEGORIES = {
    "grade": ["enlisted", "officer", "warrant officer"],
    "branch": ["air force", "army", "marine corps", "navy"],
    "gender": ["female", "male"],
    "race": ["ami/aln", "asian", "black", "multi", "p/i", "unk", "white"],
    "hisp": [False, True],
    "rank": list(range(1, 12)),
}
#: The public domain of the table of teenagers: answers of the questionnaire, and what is possible at that age.
YRBSS_DOMAIN = {
    "age": Numbers(12, 18, unit="years"),
    "gender": Categories(["female", "male"]),
    "grade": Categories(["9", "10", "11", "12", "other"], missing=True),
    "height": Numbers(1.2, 2.2, unit="m"),
    "weight": Numbers(25, 200, unit="kg"),
}


def load_us_military(*, as_frame=False):
    """Load all members of the US armed forces: one row a person, six categorical columns.

    =================   =========================================================
    rows                1,414,593
    grade               enlisted, officer, warrant officer
    branch              air force, army, marine corps, navy
    gender              female, male
    race                ami/aln (American Indian or Alaskan native), asian, black,
                        multi (several), p/i (Pacific islander), unk (unknown), white
    hisp                False, True (Hispanic)
    rank                integer, 1 to 11: number of the rank within the grade
    =================   =========================================================

    Parameters
    ----------
    as_frame : bool, default=False
        Whether to return a pandas frame with categorical columns (needs pandas).

    Returns
    -------
    Bunch
        ``data``: object array of shape (1414593, 6), or a frame; ``feature_names``; ``categories``: a dict from each
        column's name to its public domain, to declare to an estimator; ``domain``: the `dpestim.Domain` of all columns;
        ``DESCR``; ``frame`` (None unless ``as_frame``).

    Notes
    -----
    Source: US Department of Defense, active duty demographic profile, through data.gov and the openintro collection
    (data set ``military``); a work of the US government. It ships as a lossless contingency table of 1,646 cells, so
    the rows are *sorted*: shuffle the folds of a cross-validation (``KFold(3, shuffle=True)``).

    Examples
    --------
    >>> from dpestim.datasets import load_us_military
    >>> load_us_military().data.shape
    (1414593, 6)
    """
    names, cells = _read("us_military_counts.csv.gz")
    names, counts = names[:-1], np.array([int(row[-1]) for row in cells])
    parse = {"hisp": lambda text: text == "True", "rank": int}
    columns = [[parse.get(name, str)(row[j]) for row in cells] for j, name in enumerate(names)]
    domain = US_MILITARY_CATEGORIES
    codes = {name: _codes(column, domain[name], counts) for name, column in zip(names, columns)}
    categories = {name: np.array(known) for name, known in domain.items()}
    if as_frame:
        pd = _pandas()
        frame = pd.DataFrame(
            {
                name: pd.Categorical.from_codes(codes[name], categories=domain[name])
                for name in names
            }
        )
        return _bunch(frame, names, frame, load_us_military, categories=categories, domain=Domain(domain))
    data = np.empty((counts.sum(), len(names)), dtype=object)
    for j, name in enumerate(names):
        data[:, j] = np.array(domain[name], dtype=object)[codes[name]]
    return _bunch(data, names, None, load_us_military, categories=categories, domain=Domain(domain))


def load_yrbss(*, as_frame=False):
    """Load US teenagers of the Youth Risk Behavior Surveillance System: one row a person, five columns.

    =================   =========================================================
    rows                12,579
    age                 years
    gender              female, male
    grade               school grade as text: 9 to 12, other, or None (not answered)
    height              metres
    weight              kilograms
    =================   =========================================================

    Parameters
    ----------
    as_frame : bool, default=False
        Whether to return a pandas frame (needs pandas).

    Returns
    -------
    Bunch
        ``data``: object array of shape (12579, 5), or a frame; ``feature_names``; ``domain``: the `dpestim.Domain`
        of all columns; ``DESCR``; ``frame`` (None unless ``as_frame``).

    Notes
    -----
    Source: Centers for Disease Control and Prevention, Youth Risk Behavior Surveillance System, through the openintro
    collection (data set ``yrbss``); a work of the US government. Rows with a missing height or weight were left out.

    Examples
    --------
    >>> from dpestim.datasets import load_yrbss
    >>> load_yrbss().feature_names
    ['age', 'gender', 'grade', 'height', 'weight']
    """
    names, rows = _read("yrbss_height_weight.csv.gz")
    columns = [list(column) for column in zip(*rows)]
    for name in ("age", "height", "weight"):
        j = names.index(name)
        columns[j] = [float(text) for text in columns[j]]
    j = names.index("grade")
    columns[j] = [text or None for text in columns[j]]
    if as_frame:
        frame = _pandas().DataFrame(dict(zip(names, columns)))
        return _bunch(frame, names, frame, load_yrbss, domain=Domain(YRBSS_DOMAIN))
    data = np.empty((len(rows), len(names)), dtype=object)
    for j, column in enumerate(columns):
        data[:, j] = column
    return _bunch(data, names, None, load_yrbss, domain=Domain(YRBSS_DOMAIN))


def _read(name):
    """Return (header, rows) of a shipped table."""
    with files("dpestim.datasets").joinpath("data", name).open("rb") as raw, gzip.open(raw, "rt", newline="") as text:
        header, *rows = csv.reader(text)
    return header, rows


def _codes(column, known, counts):
    """Return the code of every person, from the cells of the contingency table."""
    place = {value: code for code, value in enumerate(known)}
    return np.repeat([place[value] for value in column], counts)


def _bunch(data, names, frame, loader, **more):
    return Bunch(data=data, feature_names=list(names), frame=frame, DESCR=loader.__doc__ or "", **more)


def _pandas():
    try:
        import pandas
    except ImportError as error:
        raise ImportError("as_frame=True needs pandas: pip install 'dpestim[pandas]'") from error
    return pandas
