"""What scikit-learn's estimators learn from values, told from their parameters, and what to use instead of them."""

import inspect

import numpy as np
from scipy import special

_CHOOSE = "dpestim.feature_selection.DPSelectKBest, or choose columns without looking at the data"
_PROJECT = "GaussianRandomProjection with a number of components"
#: What to use instead of an estimator of scikit-learn, by its name.
INSTEAD = {
    "StandardScaler": "dpestim.preprocessing.DPStandardScaler",
    **dict.fromkeys(("MinMaxScaler", "MaxAbsScaler", "RobustScaler"), "dpestim.preprocessing.DPMinMaxScaler"),
    **dict.fromkeys(("QuantileTransformer", "PowerTransformer"), "dpestim.preprocessing.DPQuantileTransformer"),
    "OneHotEncoder": "dpestim.preprocessing.DPOneHotEncoder, or declare categories, without min_frequency or "
                     "max_categories",
    "OrdinalEncoder": "declare categories, without min_frequency or max_categories",
    "GaussianNB": "dpestim.naive_bayes.DPGaussianNB",
    **dict.fromkeys(("CategoricalNB", "MultinomialNB", "BernoulliNB", "ComplementNB"),
                    "dpestim.naive_bayes.DPCategoricalNB"),
    **dict.fromkeys(("SelectKBest", "SelectPercentile", "SelectFromModel", "VarianceThreshold", "RFE", "RFECV",
                     "SequentialFeatureSelector"), _CHOOSE),
    **dict.fromkeys(("PCA", "IncrementalPCA", "TruncatedSVD"), "dpestim.decomposition.DPPCA"),
    **dict.fromkeys(("KernelPCA", "NMF", "FastICA"), _PROJECT),
    **dict.fromkeys(("KMeans", "MiniBatchKMeans", "BisectingKMeans"), "dpestim.cluster.DPKMeans"),
    **dict.fromkeys(("LogisticRegression", "SGDClassifier", "LogisticRegressionCV", "RidgeClassifier"),
                    "dpestim.linear_model.DPLogisticRegression"),
    "LinearSVC": "dpestim.linear_model.DPLinearSVC",
    "LinearRegression": "dpestim.linear_model.DPLinearRegression",
    **dict.fromkeys(("Ridge", "RidgeCV", "SGDRegressor"), "dpestim.linear_model.DPRidge"),
    "PoissonRegressor": "dpestim.linear_model.DPPoissonRegressor",
    "SimpleImputer": 'dpestim.preprocessing.DPSimpleImputer, or strategy="constant", a fill_value and '
                     "keep_empty_features=True",
    "KBinsDiscretizer": "dpestim.preprocessing.DPKBinsDiscretizer",
    "SplineTransformer": "knots as an array of public numbers",
    "RBFSampler": "a number as gamma",
    "FunctionTransformer": "a NumPy function of single numbers (a ufunc), with check_inverse=False where there is an "
                           "inverse, or name the step in trusted",
    "ColumnTransformer": "sparse_threshold=0, or parts that return dense arrays (sparse_output=False)",
    "GaussianRandomProjection": "a number as n_components",
    "SparseRandomProjection": "numbers as n_components and density",
    "MissingIndicator": 'features="all"',
}


def _is_row_wise(function):
    """Tell whether it is a function of single numbers of NumPy or SciPy: no other can be told from its parameters."""
    return function is None or (
        isinstance(function, np.ufunc) and function.signature is None and (function.nin, function.nout) == (1, 1)
        and any(getattr(module, function.__name__, None) is function for module in (np, special)))


def _declared(step):
    return not isinstance(step.categories, str) and step.min_frequency is None and step.max_categories is None


#: When an estimator of scikit-learn learns nothing from values: names and numbers of columns at most.
LEARNS_NOTHING = {
    **dict.fromkeys(("Normalizer", "Binarizer", "HashingVectorizer", "FeatureHasher", "AdditiveChi2Sampler",
                     "PolynomialFeatures", "SkewedChi2Sampler", "PolynomialCountSketch"), lambda step: True),
    # (with both functions, check_inverse tries them on raw values in fit, and warns of what it finds)
    "FunctionTransformer": lambda step: not (step.kw_args or step.inv_kw_args) and all(
        map(_is_row_wise, (step.func, step.inverse_func))) and not (
        step.check_inverse and step.func is not None and step.inverse_func is not None),
    "OneHotEncoder": _declared,
    "OrdinalEncoder": _declared,
    "SimpleImputer": lambda step: step.strategy == "constant" and step.keep_empty_features and not step.add_indicator,
    "MissingIndicator": lambda step: step.features == "all",
    "SplineTransformer": lambda step: not isinstance(step.knots, str),
    "RBFSampler": lambda step: not isinstance(step.gamma, str),
    "GaussianRandomProjection": lambda step: not isinstance(step.n_components, str),
    "SparseRandomProjection": lambda step: not isinstance(step.n_components, str) and step.density != "auto",
}


#: Transformers that may return a sparse matrix for dense rows, by their parameters; others do if they say so by
#: `sparse_output`.
_SPARSE = {
    "KBinsDiscretizer": lambda step: step.encode == "onehot",
    "MissingIndicator": lambda step: step.sparse is True,
    **dict.fromkeys(("HashingVectorizer", "FeatureHasher", "CountVectorizer", "TfidfVectorizer", "TfidfTransformer"),
                    lambda step: True),
    "DictVectorizer": lambda step: step.sparse,
    "ColumnTransformer": lambda step: stacks_by_count(step),
    "FeatureUnion": lambda step: any(may_be_sparse(part[1]) for part in step.transformer_list),
    "Pipeline": lambda step: bool(step.steps) and may_be_sparse(step.steps[-1][1]),
    "PrivatePipeline": lambda step: bool(step.steps) and may_be_sparse(step.steps[-1][1]),
}


def may_be_sparse(step):
    """Tell whether a transformer may return a sparse matrix for dense rows."""
    if step is None or isinstance(step, str):
        return False
    known = _SPARSE.get(type(step).__name__)
    return bool(known(step)) if known is not None else bool(getattr(step, "sparse_output", False))


def stacks_by_count(step, sparse_rows=False):
    """Tell whether a ColumnTransformer counts what is not 0, exactly, to return a sparse or a dense matrix.

    It compares the share of non-zeros with `sparse_threshold` where a part is sparse: an analyst who chooses the
    threshold reads the count by bisection, one who does not learns a bit, and steps after it see another type.
    """
    if not step.sparse_threshold:
        return False
    parts = getattr(step, "transformers_", None) or [*step.transformers, ("remainder", step.remainder, ())]
    return sparse_rows or any(may_be_sparse(part[1]) for part in parts)


def looks_at_targets(step):
    """Tell whether a transformer uses y: by its tags, its signature, or because it selects features."""
    tags = getattr(step, "__sklearn_tags__", None)
    y = inspect.signature(step.fit).parameters.get("y") if hasattr(step, "fit") else None
    return (
        (tags is not None and tags().target_tags.required)
        or (y is not None and y.default is inspect.Parameter.empty)
        or (type(step).__module__.startswith("sklearn.feature_selection")
            and type(step).__name__ != "VarianceThreshold")
    )
