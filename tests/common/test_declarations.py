"""One family over the registry: what declares columns takes all forms alike, and refuses a list of pairs."""

import inspect
import pickle
import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone, is_classifier

from dpestim import Categories, Domain, Keys, Numbers
from dpestim.base import all_estimators
from dpestim.central.additive.mechanism import AdditiveMechanism
from dpestim.central.selection.exponential import ExponentialMechanism
from dpestim.preprocessing import DomainEncoder
from dpestim.recommend import LDPMatrixFactorization
from dpestim.recommend.base import RatingMechanism
from dpestim.stream.base import StreamMechanism
from dpestim.testing.tools import Book, same_state

PARAMETERS = ("bounds", "categories", "classes", "target_bounds", "keys")
#: What has the range of an answer, of candidates, of a step, or of all ratings, and no columns.
WITHOUT_COLUMNS = (AdditiveMechanism, ExponentialMechanism, LDPMatrixFactorization, RatingMechanism, StreamMechanism)
ROWS = 40


def bounded(cls, settings):
    """Return settings, and each of them with bounds where all settings declare something else, such as a norm."""
    if "bounds" not in cls._get_param_names() or any("bounds" in setting for setting in settings):
        return settings
    return [*settings, *({**{name: value for name, value in setting.items() if name != "data_norm"},
                          "bounds": (-1.0, 1.0)} for setting in settings)]


def _declaring():
    """Yield (name, class, setting) of the registry where a parameter declares columns."""
    for name, cls in all_estimators():
        for k, setting in enumerate(bounded(cls, cls._test_params())):
            given = [p for p in PARAMETERS if setting.get(p) is not None and not isinstance(setting[p], str | int)]
            if given and not issubclass(cls, WITHOUT_COLUMNS) and setting.get("function") is None:
                yield pytest.param(cls, setting, id=f"{name}-{k}")


SETTINGS = list(_declaring())
BOUNDED = [given for given in SETTINGS if isinstance(given.values[1].get("bounds"), tuple | dict)]


class Case:
    """A setting, rows with names, and what each of its declarations says, column by column."""

    def __init__(self, cls, setting):
        self.cls, self.setting = cls, dict(setting)
        X, y = cls(**setting)._test_data(ROWS)
        self.sparse = hasattr(X, "nnz")
        self.X, self.y, self.columns, self.words, self.target = X, y, {}, {}, None
        if not self.sparse:
            table = X if np.ndim(X) == 2 else np.asarray(X).reshape(-1, 1)
            self.names = [f"c{j}" for j in range(table.shape[1])]
            frame = pd.DataFrame({name: pd.Series(list(table[:, j])) for j, name in enumerate(self.names)})
            self.X = frame if np.ndim(X) == 2 else frame["c0"]
            if y is not None:
                self.y = pd.Series(list(y), name="target")
            self.lists()
            self.pairs()
        if setting.get("classes") is not None:
            self.target = Categories(setting["classes"])
        elif setting.get("target_bounds") is not None:
            self.target = Numbers(*setting["target_bounds"])

    def lists(self):
        lists = self.setting.get("categories")
        if lists is None or isinstance(lists, str):
            return
        if isinstance(lists, dict):
            places = {name: j for j, name in enumerate(self.names)}
            lists = {places.get(key, key): own for key, own in lists.items()}
        elif not any(np.ndim(own) or own is None for own in lists):
            lists = {0: lists}
        else:
            lists = dict(enumerate(lists))
        self.words = {self.names[j]: own for j, own in lists.items() if isinstance(own, str)}  # ("private")
        self.columns |= {self.names[j]: Categories(own) for j, own in lists.items()
                         if own is not None and not isinstance(own, str)}

    def pairs(self):
        bounds = self.setting.get("bounds")
        if bounds is None or isinstance(bounds, str):
            return
        numbers = [name for name in self.names if name not in self.columns]
        if isinstance(bounds, dict):
            self.columns |= {name if isinstance(name, str) else self.names[name]: Numbers(*pair)
                             for name, pair in bounds.items()}
            return
        low, high = (np.broadcast_to(end, len(numbers)).tolist() for end in bounds)
        self.columns |= {name: Numbers(a, b) for name, a, b in zip(numbers, low, high)}

    def fit(self, **changed):
        """Return what a fit with other declarations keeps, and what it promises."""
        est = self.cls(**{**self.setting, "random_state": 0, **changed})
        est.fit(self.X) if self.y is None else est.fit(self.X, self.y)
        kept = {name: value for name, value in vars(est).items() if name.endswith("_") and not name.startswith("_")}
        if "result_" in kept:
            kept["result_"] = est.result_.value, est.result_.standard_error
        return {name: value for name, value in kept.items() if name != "privacy_"}, est

    def forms(self):
        """Yield (name, declarations), all of which say the same."""
        numbers = {name: (own.low, own.high) for name, own in self.columns.items() if isinstance(own, Numbers)}
        lists = {name: own.all_values for name, own in self.columns.items() if isinstance(own, Categories)} | self.words
        places = {name: j for j, name in enumerate(self.names)} if not self.sparse else {}
        has = {name: self.setting.get(name) is not None and not isinstance(self.setting[name], str)
               for name in PARAMETERS}

        def both(pairs, categories):
            return {**({"bounds": pairs} if has["bounds"] and numbers else {}),
                    **({"categories": categories} if has["categories"] and lists else {})}

        if numbers or lists:
            yield "names", both(numbers, lists)
            yield "more names", both({**numbers, "not needed": (0, 1)}, {**lists, "not needed": [1, 2]})
            if len(numbers) + len(lists) == len(places) and not (numbers and lists):
                yield "places", both({places[name]: pair for name, pair in numbers.items()},
                                     {places[name]: own for name, own in lists.items()})
            domain = Domain({**{name: self.columns[name] for name in self.names if name in self.columns},
                             "not needed": (0, 1), "nor this": ["a", "b"]})
            if not self.words:
                yield "Domain", both(domain, domain)
        for name in ("classes", "target_bounds"):
            if has[name]:
                plain = self.target.all_values if name == "classes" else (self.target.low, self.target.high)
                others = {"other": [1, 2]} if name == "classes" else {"other": (1, 2)}
                yield name, {name: self.target}
                yield f"{name} by name", {name: {"target": plain, **others}}
                domain = Domain({"c0": (0, 1), "target": self.target, "d": (0, 1), "e": [1, 2]})
                yield f"{name} of a Domain", {name: domain}
        if has["keys"]:
            keys, bounds = self.setting["keys"], self.setting.get("bounds", (-1.0, 1.0))
            column = Keys(list(range(keys)) if isinstance(keys, int) else keys, *bounds)
            yield "Keys", {"keys": column, "bounds": (-1.0, 1.0)}
            yield "Domain of keys", {"keys": Domain({"ratings": column, "age": (0, 1)}), "bounds": (-1.0, 1.0)}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("cls", "setting"), SETTINGS)
def test_all_forms_say_the_same(cls, setting):
    case = Case(cls, setting)
    forms = list(case.forms())
    assert forms, "no form of this setting was tried"
    plain, _ = case.fit()
    for name, changed in forms:
        kept, est = case.fit(**changed)
        assert kept.keys() == plain.keys(), name
        different = [key for key in kept if not same_state(kept[key], plain[key])]
        assert not different, f"{name}: other {different}"
        # what is declared survives clones and pickles, and shows
        twin = clone(est)
        assert all(getattr(twin, key) == value for key, value in changed.items() if isinstance(value, Domain | dict))
        assert pickle.loads(pickle.dumps(est)).get_params(deep=False).keys() == est.get_params(deep=False).keys()
        assert not any(isinstance(value, Domain) for value in changed.values()) or "Domain(" in repr(twin)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("cls", "setting"), BOUNDED)
def test_a_list_of_pairs_is_refused(cls, setting):
    case = Case(cls, setting)
    pairs = [(own.low, own.high) for own in case.columns.values() if isinstance(own, Numbers)]
    for wrong in (pairs or [(0.0, 1.0)], [(0.0, 1.0), (0.0, 1.0)]):
        with pytest.raises(ValueError, match="bounds must not be a list of pairs") as error:
            case.fit(bounds=wrong)
        assert '{"age": (17, 90)}' in str(error.value)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("cls", "setting"), SETTINGS)
def test_what_lacks_a_column_is_refused(cls, setting):
    case = Case(cls, setting)
    for name in case.columns:
        parameter = "bounds" if isinstance(case.columns[name], Numbers) else "categories"
        if parameter == "categories" and setting.get("bounds") is not None:
            continue  # (a column without categories is one of numbers there)
        others = Domain({**{own: column for own, column in case.columns.items() if own != name}, "z": (0, 1),
                         "zz": ["a", "b"]})
        with pytest.raises(ValueError, match="column"):
            case.fit(**{p: others for p in ("bounds", "categories") if setting.get(p) is not None})


#: What takes rows of private values; of a classifier, which a class has.
TAKES_ROWS = ("privatize", "transform", "predict", "predict_proba", "decision_function", "apply")
#: What takes numbers that may be missing; of categories all do.
TAKE_NUMBERS = {
    "DPDecisionTreeClassifier", "DPDecisionTreeRegressor", "DPGaussianNB", "DPGradientBoostingClassifier",
    "DPGradientBoostingRegressor", "DPRandomForestClassifier", "DPRandomForestRegressor", "DPSimpleImputer",
    "DuchiTransformer", "HMTransformer", "LDPNaiveBayes", "LaplaceTransformer", "MarginalSynthesizer",
    "MultiplicativeWeights", "PMTransformer", "RangeEstimator", "SWTransformer", "StaircaseTransformer",
}
#: What a refusal ends with: what helps.
HELPS = r"DPSimpleImputer|missing=True|[Ff]ill missing values|[Ll]eave out"


def with_missing(case, name):
    """Return (declarations that say that values of a column may be missing, rows in which some are)."""
    column = case.columns[name]
    may = (Numbers(column.low, column.high, missing=True) if isinstance(column, Numbers)
           else Categories(column.values, missing=True))
    domain = Domain(case.columns | {name: may})
    given = {p: domain for p in ("bounds", "categories") if case.setting.get(p) is not None}
    rows = case.X.copy() if isinstance(case.X, pd.DataFrame) else case.X.to_frame()
    # (as a library reads a file: floats with NaN, or objects with None)
    numeric = rows[name].dtype.kind in "biuf"
    rows[name] = rows[name].astype(float if numeric else object)
    rows.loc[rows.index[1::3], name] = np.nan if numeric else None
    return given, rows if isinstance(case.X, pd.DataFrame) else rows["c0"]


def told(name, call, *args):
    """Return whether a call took missing values; a refusal must name their column and what helps."""
    try:
        out = call(*args)
    except ValueError as error:
        text = str(error)
        assert re.search(rf"column '?{name}'?|{name}|\bX\b", text), text
        assert re.search(HELPS, text), text
        return False
    assert out is not None
    return True


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("cls", "setting"), [given for given in SETTINGS if not isinstance(
    given.values[1].get("bounds", given.values[1].get("categories")), str | None.__class__)])
def test_missing_values_are_taken_or_refused_with_what_helps(cls, setting):
    case = Case(cls, setting)
    for kind in (Numbers, Categories):
        name = next((name for name, own in case.columns.items() if isinstance(own, kind)), None)
        if name is None or case.words or (kind is Categories and {"epsilons", "distance", "prior"} & setting.keys()):
            continue  # (some have parameters with one entry for each category)
        given, rows = with_missing(case, name)
        est = cls(**{**setting, "random_state": 0, **given})
        y = () if case.y is None else (case.y,)
        taken = told(name, est.fit, rows, *y)
        assert taken == (kind is Categories or (cls.__name__ in TAKE_NUMBERS and setting.get("strategy") != "joint"))
        if not taken:  # such a domain may be that of a step before, after which nothing is missing
            est.fit(case.X, *y)
        for method in TAKES_ROWS:
            call = getattr(est, method, None)
            if call is not None:
                assert told(name, call, rows, *(y if method == "privatize" else ())) == taken, method


# ---------------------------------------------------------------- delta

#: What a registry's estimator says of a fit or a release; of many of a room one word is enough.
DELTAS = [pytest.param(cls, setting, id=f"{name}-{k}") for name, cls in all_estimators()
          if "delta" in cls._get_param_names() for k, setting in enumerate(cls._test_params())]


def outcome(cls, setting, delta):
    """Return what is promised, and what is kept of a fit; or the message of the error."""
    est = cls(**{**setting, "delta": delta, "random_state": 0} if "random_state" in cls._get_param_names() else {
        **setting, "delta": delta})
    X, y = est._test_data(ROWS)
    try:
        promised = est.privacy_ if hasattr(est, "privacy_") else None
        if not hasattr(est, "fit"):
            return promised, est.release(X)
        est.fit(X) if y is None else est.fit(X, y)
    except ValueError as error:
        return str(error)
    kept = {name: value for name, value in vars(est).items() if name.endswith("_") and not name.startswith("_")}
    return promised, est.privacy_, kept


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("cls", "setting"), DELTAS)
def test_no_delta_is_said_by_none_and_by_zero(cls, setting):
    assert inspect.signature(cls.__init__).parameters["delta"].default is None
    plain, zero = outcome(cls, setting, None), outcome(cls, setting, 0.0)
    assert same_state(plain, zero)
    if isinstance(plain, str):  # it cannot be private without one, and says so
        assert "delta" in plain
    else:
        assert plain[0] is None or plain[0].delta == 0
    for wrong in (-1e-9, 1.0, float("nan"), "0", True):
        assert "delta" in outcome(cls, setting, wrong)


# ---------------------------------------------------------------- limits

#: What is declared as a range, by one reader; beside it: a valid one. (Regions of places are smaller.)
RANGES = [pytest.param(given.values[0], given.values[1], name, id=f"{given.id}-{name}") for given in SETTINGS
          for name in ("bounds", "target_bounds") if isinstance(given.values[1].get(name), tuple)
          and "units" not in given.values[1]]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("cls", "setting", "name"), RANGES)
def test_bounds_have_one_limit_and_one_message(cls, setting, name):
    case, said, ledger = Case(cls, setting), set(), Book()
    for wrong in ((0.0, 1.1e140), (-1e200, 1.0), (0.0, 0.9e-140)):
        with pytest.raises(ValueError) as error:
            case.fit(**{name: wrong, "ledger": ledger})
        said.add(str(error.value))
    assert said == {f"{name} must lie between -1e+140 and 1e+140, and at least 1e-140 apart: write the column and its "
                    "bounds in another unit, such as thousands or millionths"}
    assert not ledger.paid
    if not setting.get("proposed_bound") and setting.get("low_sensitivity") is None:  # (which are in units of the data)
        for good in ((-1e140, 1e140), (0.0, 1.1e-140)):
            case.fit(**{name: good})


# ---------------------------------------------------------------- raw numbers

LINEAR = [given for given in BOUNDED if hasattr(given.values[0], "predict") and "fit_intercept" in
          given.values[0]._get_param_names() and np.ndim(given.values[1]["bounds"]) == 1]


def test_what_has_a_norm_takes_bounds_too():
    names = {given.id.rsplit("-", 1)[0] for given in BOUNDED}
    for name, cls in all_estimators():
        parameters = cls._get_param_names()
        assert "data_norm" not in parameters or "bounds" in parameters, name
        declares = "bounds" in parameters and not issubclass(cls, WITHOUT_COLUMNS)
        assert not declares or name in names or any("keys" in setting or "function" in setting
                                                    for setting in cls._test_params()), name


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("cls", "setting"), LINEAR)
def test_coefficients_are_in_units_of_raw_numbers(cls, setting):
    """The same rows in metres and in millimetres have the same predictions, and coefficients a thousand apart."""
    setting = {**setting, "random_state": 0}
    X, y = cls(**setting)._test_data(400)
    low, high = setting["bounds"]
    origin = 3000.0 if setting.get("fit_intercept", True) else 0.0
    near, far = cls(**setting).fit(X, y), cls(**{**setting, "bounds": (1000 * low + origin, 1000 * high + origin)})
    if hasattr(far, "alpha") and far.alpha is not None:  # (a penalty on coefficients of X)
        far.set_params(alpha=far.alpha * 1e6)
    far.fit(1000 * X + origin, y)
    assert np.allclose(far.coef_ * 1000, near.coef_, rtol=1e-6)
    assert np.allclose(far.intercept_ + far.coef_ @ np.full(X.shape[1], origin), near.intercept_)
    for verb in ("predict_proba", "decision_function", "predict"):
        if hasattr(near, verb) and not (verb == "predict" and is_classifier(near)):
            assert np.allclose(getattr(far, verb)(1000 * X + origin), getattr(near, verb)(X), rtol=1e-5)
    assert near.coef_.any()
    twin = pickle.loads(pickle.dumps(far))
    assert np.array_equal(twin.predict(1000 * X + origin), far.predict(1000 * X + origin))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("library", [pd, pl])
@pytest.mark.parametrize(("cls", "setting"), [given for given in LINEAR if "domain" in
                                              given.values[0]._get_param_names()])
def test_a_domain_is_the_bounds_of_a_raw_frame(cls, setting, library):
    setting = {**setting, "random_state": 0, "data_norm": None} if "data_norm" in cls._get_param_names() else {
        **setting, "random_state": 0}
    X, y = cls(**setting)._test_data(ROWS)
    names = [f"c{j}" for j in range(X.shape[1])]
    frame = library.DataFrame({name: X[:, j] for j, name in enumerate(names)})
    domain = Domain({**dict.fromkeys(names, tuple(setting["bounds"])), "colour": ["red", "blue"]})
    one = cls(**setting).fit(frame, y)
    other = cls(**{**setting, "bounds": None, "domain": domain}).fit(frame, y)
    assert np.array_equal(one.coef_, other.coef_)
    assert np.array_equal(one.predict(frame), other.predict(frame))
    # encoded rows have other names, and are not scaled twice
    encoded = cls(**{**setting, "bounds": None, "domain": domain})
    encoded.fit(DomainEncoder(domain).set_output(transform=library.__name__).fit_transform(frame), y)
    if setting.get("sensitivity") != "published":  # (which is another one for rows with a norm)
        assert np.allclose(encoded.coef_, one.coef_, atol=1e-5)
    # and a column of categories must be encoded
    mixed = frame.assign(colour=1.0) if library is pd else frame.with_columns(colour=1.0)
    with pytest.raises(ValueError, match=r"'colour' are categories of domain: put .*DomainEncoder\(domain\)"):
        cls(**{**setting, "bounds": None, "domain": domain}).fit(mixed, y)


# ---------------------------------------------------------------- frames of mixed columns

def of_numbers(cls, setting):
    """Tell whether a setting takes a table of several columns of numbers, and no categories."""
    if not hasattr(cls, "fit") or {"keys", "transformers", "categories"} & set(cls._get_param_names()):
        return False
    X = cls(**setting)._test_data(ROWS)[0]
    return np.ndim(X) == 2 and not hasattr(X, "nnz")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("library", [pd, pl])
@pytest.mark.parametrize(("cls", "setting"), [given for given in BOUNDED if of_numbers(*given.values)])
def test_a_frame_of_mixed_columns_is_refused_with_the_two_lines_that_help(cls, setting, library):
    X, y = cls(**setting)._test_data(ROWS)
    others = {f"c{j}": X[:, j] for j in range(1, X.shape[1])}
    frame = library.DataFrame({"c0": ["red", "blue"] * (ROWS // 2), **others})
    ledger = Book()
    with pytest.raises(ValueError) as error:
        cls(**{**setting, "ledger": ledger}).fit(*((frame,) if y is None else (frame, y)))
    text = str(error.value)
    assert "'c0'" in text
    assert "Columns without numbers here: 'c0'. Leave them out of X, or declare and encode all columns:\n" in text
    assert text.splitlines()[1].strip().startswith("domain = dpestim.Domain({'c0': [values]")
    assert text.splitlines()[2].strip() == "X = dpestim.preprocessing.DomainEncoder(domain).fit_transform(X)"
    assert not ledger.paid
