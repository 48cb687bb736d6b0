"""`dpestim survey new`, `show` and `check`."""

import json

from dpestim.commands.parser import DONE, REJECTED, USAGE
from dpestim.commands.streams import read_text, say, show, show_facts, write_text


def usage(args):
    """Print the actions."""
    args.parser.print_help()
    return USAGE


def load(path):
    """Return the survey of a file, or of the standard input for "-"."""
    from dpestim.collection import Survey

    try:
        return Survey.from_json(read_text(path))
    except ValueError as error:
        raise ValueError(f"the survey file {path}: {error}") from None


def new(args):
    """Write a survey of all columns of a domain file."""
    from dpestim.collection import Survey
    from dpestim.inputs import Domain

    domain = Domain.load(args.domain)
    questions = {}
    for given in args.question:
        column, found, text = given.partition("=")
        if not found or column not in domain:
            raise ValueError(f"--question must be COLUMN=TEXT with one of the columns {domain.names}")
        questions[column] = text
    client = client_for(domain, args.epsilon, args.mechanism)
    survey = Survey(client, name=args.name, valid_from=args.valid_from, valid_until=args.valid_until,
                    questions=questions or None, language=args.language)
    write_text(args.output, survey.to_json())
    if args.output != "-":
        say(f"wrote {args.output}: survey {survey.id}, {survey.report_bytes} bytes a report")
    return DONE


def show_survey(args):
    """Print what is asked and promised."""
    survey = load(args.survey)
    body = json.loads(survey.to_json())
    show(survey, args.json, id=survey.id, name=survey.name, epsilon=survey.privacy_.epsilon,
         report_bytes=survey.report_bytes, guarantee=body["guarantee"]["text"],
         asked=[{part: column[part] for part in ("name", "question", "domain")} for column in body["columns"]])
    return DONE


def check(args):
    """Derive the numbers of a file again: 3 where they do not follow from what it states."""
    try:
        survey = load(args.survey)
    except ValueError as error:
        say(f"dpestim survey check: {error}")
        show_facts({"valid": False}, args.json)
        return REJECTED
    show_facts({"valid": True, "id": survey.id, "name": survey.name, "epsilon": survey.privacy_.epsilon}, args.json)
    return DONE


def client_for(domain, epsilon, mechanism=None):
    """Return a client for all columns of a domain: the named mechanism, or the best for each column without data."""
    kinds = {name: type(column).__name__ for name, column in domain.items()}
    if mechanism is not None:
        return _named(mechanism, domain, epsilon, set(kinds.values()))
    if len(kinds) == 1 or set(kinds.values()) == {"Keys"}:
        [(name, kind)] = list(kinds.items())[:1]
        return _best(domain, kind, domain[name], epsilon)
    if "Keys" in kinds.values():
        raise ValueError("the domain must not have columns of keys beside others: make a survey of its own for them")
    from dpestim.local import MixedEstimator

    parts = [(str(name), _best(domain[[name]], kind, domain[name], None), [name]) for name, kind in kinds.items()]
    return MixedEstimator(parts, epsilon=epsilon)


def _best(domain, kind, column, epsilon):
    """Return the client with the least error for one column, as closed forms have it; nothing is read."""
    from math import exp

    from dpestim import local

    budget = {} if epsilon is None else {"epsilon": epsilon}
    if kind == "Numbers":
        return local.HMTransformer(bounds=domain, **budget)
    if kind == "Text":
        return local.CMSFrequencyEstimator(categories=domain, **budget)
    if kind == "Keys":
        return local.PCKVEstimator(keys=domain, **budget)
    d = len(column.values)
    each = 1.0 if epsilon is None else float(epsilon)
    if d < 3 * exp(each) + 2:
        return local.GRRFrequencyEstimator(categories=domain, **budget)
    return (local.OUEFrequencyEstimator if d <= 1024 else local.OLHFrequencyEstimator)(categories=domain, **budget)


def _named(mechanism, domain, epsilon, kinds):
    from dpestim import local

    names = [name for suffix in ("", "FrequencyEstimator", "Transformer", "Estimator")
             if (name := mechanism + suffix) in local.__all__]
    if not names:
        raise ValueError(f"--mechanism must name a class of dpestim.local, such as GRR, OUE or PM, not {mechanism!r}")
    if len(kinds) > 1:
        raise ValueError("--mechanism must be left out where the domain has columns of several kinds")
    cls = getattr(local, names[0])
    parameters = cls().get_params(deep=False)
    declared = next((name for name in ("categories", "bounds", "keys") if name in parameters), None)
    if declared is None:
        raise ValueError(f"--mechanism must be a client of one kind of columns, which {names[0]} is not")
    return cls(epsilon=epsilon, **{declared: domain})
