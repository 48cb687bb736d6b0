"""A client as plain values: its class by name and its parameters, and from these an equal client again.

Names are looked up among the classes of `dpestim.local` and those that `dpestim.local.extend.register` was told;
nothing is imported because a file says so.
"""

import inspect
from functools import partial
from numbers import Real

import dpestim.local
from dpestim.collection.values import fraction_text, from_plain, read_fraction, read_number, shortest, to_plain
from dpestim.local.categories.open import OpenFrequencyEstimator
from dpestim.local.estimates.mixed import MixedEstimator
from dpestim.local.estimates.transformer_server import TransformerServer
from dpestim.local.extend import registered
from dpestim.local.feature_client import FeatureClient
from dpestim.local.numbers.privunit import PrivUnitTransformer
from dpestim.local.numbers.transformer import NumericTransformer
from dpestim.privacy.exact import canonical_epsilon

#: Parameters that a survey does not fix: those of the machine that runs the client or the server.
FREE = ("ledger", "random_state", "n_jobs", "verbose")


def classes():
    """Return the classes that a survey may name, by name."""
    own = {name: getattr(dpestim.local, name) for name in dpestim.local.__all__}
    return registered() | {name: cls for name, cls in own.items()
                           if inspect.isclass(cls) and hasattr(cls, "get_params")}


def described(client, settle=True):
    """Return a client as {"class", "parameters"}, or raise ValueError for what cannot be written down.

    `settle`: write down how many columns there are, where one declaration would do for any number of them.
    """
    name = type(client).__name__
    if classes().get(name) is not type(client):
        raise ValueError(f"client must be of a class of dpestim.local, and {name} is another one: tell "
                         "dpestim.local.extend.register(cls) of a class of your own, on both sides")
    given, out = _settled(client) if settle else client.get_params(deep=False), {}
    for parameter in sorted(given):
        if parameter in FREE:
            continue
        value, why = given[parameter], None
        try:
            if parameter.startswith("epsilon") and isinstance(value, Real) and not isinstance(value, bool):
                out[parameter] = fraction_text(canonical_epsilon(value, parameter))
            else:
                own = partial(described, settle=settle and not isinstance(client, MixedEstimator))
                out[parameter] = to_plain(value, own)
        except ValueError as error:
            why = error
        if why is not None:
            raise ValueError(f"{parameter} of {name} {why}" if str(why).startswith("has ") else str(why))
    state = client.public_state() if hasattr(client, "public_state") else None
    return {"class": name, "parameters": out} | ({} if state is None else {"round": _state(state, shortest)})


def made(description):
    """Return the client that a description says, or raise ValueError; all `FREE` parameters have their defaults."""
    if not isinstance(description, dict) or set(description) - {"round"} != {"class", "parameters"} or not isinstance(
            description["parameters"], dict) or not isinstance(description["class"], str):
        raise ValueError("client must have a class and parameters")
    cls = classes().get(description["class"])
    if cls is None:
        raise ValueError("client.class must be a class of dpestim.local, or one that dpestim.local.extend.register was "
                         "told: update dpestim, or register the class")
    known, parameters = set(cls._get_param_names()) - set(FREE), {}
    for name, value in description["parameters"].items():
        if name not in known:
            raise ValueError(f"client.parameters.{name} is not a parameter of {cls.__name__}: update dpestim")
        why = None
        try:
            if name.startswith("epsilon") and isinstance(value, str) and value[:1].isdigit():
                parameters[name] = read_fraction(value)
            else:
                parameters[name] = from_plain(value, made)
        except (TypeError, OverflowError) as error:
            why = error
        except ValueError as error:
            why = error
        if why is not None:
            raise ValueError(f"client.parameters.{name}: {why}")
    client = cls(**parameters)
    if "round" not in description:
        return client
    if not hasattr(client, "resume_at"):
        raise ValueError(f"client.round must not be there: {cls.__name__} has no rounds")
    return client.resume_at(_state(description["round"], read_number))


def _state(value, each):
    """Return a public state with floats as decimals, or with decimals as floats."""
    if isinstance(value, dict):
        return {key: _state(part, each) for key, part in value.items()}
    if isinstance(value, list):
        return [_state(part, each) for part in value]
    return each(value) if isinstance(value, float | str) else value


def _settled(client):
    """Return the parameters of a client, where what the data would settle otherwise is settled: how many columns."""
    given = client.get_params(deep=False)
    if getattr(dpestim.local, type(client).__name__, None) is not type(client):
        return given  # (a class of somebody else may know one form of a declaration only)
    seen = getattr(client, "_columns", None)
    n_columns = getattr(client, "_fewest_columns", 1) if seen is None else seen.n_features
    if given.get("bounds") is not None and (
            client._is_scalar() if isinstance(client, NumericTransformer)
            else isinstance(client, FeatureClient) and given["categories"] is None and client._same_bounds()):
        given["bounds"] = dict.fromkeys(range(n_columns), given["bounds"])
    if isinstance(client, PrivUnitTransformer) and client._is_declared:
        given["center"] = client._columns_now().columns[0].centre.tolist()
    if isinstance(client, OpenFrequencyEstimator) and given["categories"] is None:
        given["categories"] = [None] * n_columns  # (open columns)
    if isinstance(client, TransformerServer):
        given["transformer"] = getattr(client, "transformer_", client.transformer)
    if isinstance(client, MixedEstimator) and isinstance(client.transformers, list | tuple):
        columns = client._columns
        labels = [each[2] for each in client._choices(None)] if columns is None else [
            part.labels for part in columns.members]
        given["transformers"] = [(name, part, list(own))
                                 for (name, part, _), own in zip(client.transformers, labels)]
    return given


def inner(estimator):
    """Return who randomises for an estimator: the client in it, or itself."""
    return getattr(estimator, "transformer_", estimator.transformer) if isinstance(
        estimator, TransformerServer) else estimator
