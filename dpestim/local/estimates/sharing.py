"""Who gets how much of a row's epsilon: exact shares of the columns of several clients, and how many are drawn."""

import inspect
import math
from copy import copy
from fractions import Fraction
from numbers import Integral, Real

import numpy as np
from sklearn.base import clone

from dpestim.local.categories.estimator import FrequencyEstimator
from dpestim.local.estimates.mean import MeanEstimator
from dpestim.local.estimates.rows import Part, row_of
from dpestim.local.estimates.transformer_server import TransformerServer
from dpestim.local.numbers.transformer import NumberClient
from dpestim.local.server import Server
from dpestim.privacy.exact import canonical_epsilon

#: Parameters that are those of the whole row, and so are left alone in clients.
_OF_THE_ROW = ("ledger", "random_state", "n_jobs")


def shared_row(choices, epsilon, strategy, n_sampled, shares):
    """Return the row of (name, client, labels) of all clients; every report has an exact part of epsilon."""
    pairs = [template_of(name, client) for name, client, _ in choices]
    sizes = [client._n_parts(len(labels)) for (_, client), (_, _, labels) in zip(pairs, choices)]
    d, k = sum(sizes), n_sampled
    if strategy not in ("sample", "split"):
        raise ValueError("strategy must be 'sample' or 'split'")
    if strategy == "split":
        if k is not None:
            raise ValueError("n_sampled must be None with strategy='split', which reports every column")
        each = [epsilon * w / size for w, size in zip(_weights(shares, choices, sizes), sizes)]
        return _row_at(each, choices, pairs, None)
    if shares is not None:
        raise ValueError("shares must be None with strategy='sample', which gives every drawn column the same share")
    if k is None:
        return _best(epsilon, d, choices, pairs)
    if isinstance(k, bool) or not isinstance(k, Integral) or not 1 <= k <= d:
        raise ValueError(f"n_sampled must be None or an integer from 1 to {d}, the number of columns")
    return _row_at([epsilon / int(k)] * len(pairs), choices, pairs, int(k) if k < d else None)


def _weights(shares, choices, sizes):
    """Return the part of epsilon that each client's columns have together; they sum to 1, exactly."""
    names = [name for name, _, _ in choices]
    if shares is None:
        return [Fraction(size, sum(sizes)) for size in sizes]
    if not isinstance(shares, dict) or set(shares) != set(names):
        raise ValueError("shares must be None or a dict from each of the names in transformers to its share")
    weights = [canonical_epsilon(shares[name], f"shares of {name!r}") for name in names]
    return [w / sum(weights) for w in weights]


def _best(epsilon, d, choices, pairs):
    """Return the row with the number of draws after which the variances grow: claim 6 of ``mixed.md``."""
    best, wrong = None, None
    for k in range(1, d + 1):
        fresh, why = [(copy(server), copy(client)) for server, client in pairs], None
        try:
            row = _row_at([epsilon / k] * len(pairs), choices, fresh, k if k < d else None)
            loss = _loss(row, d, k)
        except ValueError as error:  # an epsilon is too large, or, once one was not, the next is too small
            why = error
        if why is not None:
            wrong = wrong or why
            if best is not None:
                break
            continue
        if best is not None and loss >= best[0]:
            break
        best = loss, row
    if best is None:
        raise ValueError(str(wrong))
    return best[1]


def _row_at(each, choices, pairs, n_sampled):
    """Return the row in which each client's reports have this epsilon."""
    columns, parts, start = [], [], 0
    for share, (name, _, labels), (server, client) in zip(each, choices, pairs):
        client._each, own, why = share, None, None
        if isinstance(server, TransformerServer):
            server.transformer = client
        elif isinstance(server, FrequencyEstimator):
            server = client
        try:
            own = client._declare_for(labels)
        except ValueError as error:
            why = error
        if why is None and own.n_features != len(labels):
            why = f"{client._domain} must have one entry for each of its {len(labels)} columns, got {own.n_features}"
        if why is None and own.keys is not None and isinstance(labels[0], str) and list(labels) != list(own.keys):
            why = f"the columns must be the keys of {client._domain}, in the same order: {list(own.keys)}"
        if why is not None:
            raise ValueError(f"transformers: {name!r}: {why}")
        at, features = slice(len(columns), len(columns) + len(own)), slice(start, start + len(labels))
        parts.append(Part(name, server, client, at, features, labels))
        columns += own.named([f"column {v!r}" for v in labels]).columns
        start = features.stop
    return row_of(columns, parts, n_sampled)


def template_of(name, given):
    """Return (a fresh server, who randomises for it) of an entry of `transformers`, or raise ValueError."""
    inner = getattr(given, "transformer", None) if isinstance(given, TransformerServer) else given
    if not isinstance(inner, FrequencyEstimator | NumberClient):
        raise ValueError(f"transformers: {name!r} must be a frequency estimator or a transformer of dpestim.local, or "
                         "a MeanEstimator or DistributionEstimator of one")
    if not inner._is_declared or (isinstance(inner, FrequencyEstimator) and inner.categories is None):
        raise ValueError(f"transformers: {inner._domain} of {name!r} must be declared")
    defaults = inspect.signature(type(inner).__init__).parameters
    for parameter, value in inner.get_params(deep=False).items():
        of_the_row = parameter in _OF_THE_ROW or parameter.startswith("epsilon")
        default = defaults[parameter].default
        if of_the_row and not (value is default or (isinstance(value, Real) and value == default)):
            raise ValueError(f"transformers: {parameter} of {name!r} must have its default: set it in the "
                             "MixedEstimator, for the whole row" + ("" if parameter in _OF_THE_ROW else
                                                                    ", which divides it among the columns"))
    if getattr(inner, "strategy", None) == "sample":
        raise ValueError(f"transformers: strategy of {name!r} must not be 'sample', because the MixedEstimator draws "
                         "among all columns")
    server = clone(given)
    client = server.transformer if isinstance(server, TransformerServer) else server
    return server if isinstance(server, Server) else MeanEstimator(server), client


def _loss(row, d, k):
    """Return the sum of the logarithms of the variances that drawing k of d columns leaves: claim 6 of ``mixed.md``."""
    known = {}
    for column in row:
        if column.law not in known:  # (of other bounds it differs by what does not depend on k)
            known[column.law] = _loss_of(column, d / k)
    return sum(known[column.law] for column in row)


def _loss_of(column, rarity):
    if not hasattr(column, "categories"):
        return float(np.mean([math.log(rarity * v - column.even_spread) for v in column.even_variance()]))
    law, share = column.law, 1 / column.law.n_categories
    f = share if law.varies_by_own_share else np.full(law.n_categories, share)
    return math.log(rarity * float(np.mean(law.variance(1, f))) + (rarity - 1) * share * (1 - share))
