"""A guarantee in the words of a language: the promise, and the odds."""

from dpestim.privacy.text import bound, odds, posterior


def promise(guarantee, say):
    """Return what a guarantee promises, in sentences; notes of estimators are in English."""
    if say.name == "en":
        return str(guarantee)
    said = [_face(guarantee, say)]
    if guarantee.is_finite and not guarantee.is_nothing and guarantee.seeded is not False:
        said.append(say("promise.seeded" if guarantee.seeded else "promise.unknown_seed"))
    if guarantee.relaxation is not None and guarantee.relaxed_epsilon < guarantee.epsilon:
        said.append(say("promise.relaxed", relaxation=guarantee.relaxation,
                        epsilon=say.number(bound(guarantee.relaxed_epsilon))))
    return " ".join([*said, *([notes_of(guarantee, say)] if guarantee.notes else [])])


def notes_of(guarantee, say):
    """Return the notes of a guarantee, which estimators write in English; nothing where there are none."""
    return say("promise.notes", notes=" ".join(guarantee.notes)) if guarantee.notes else ""


def _face(guarantee, say):
    if not guarantee.is_finite:
        return say("promise.none")
    if guarantee.is_nothing:
        return say("promise.nothing")
    about = {"model": say(f"model.{guarantee.model}"), "pairs": say(f"pairs.{guarantee.neighbours.value}")}
    if guarantee.delta == 1:
        return say("promise.curve", curve=say.number(guarantee.curve.face), **about)
    epsilon, delta = say.number(bound(guarantee.epsilon)), say.number(bound(guarantee.delta))
    said = say("promise.face", what=f"({epsilon}; {delta})" if guarantee.delta else epsilon, epsilon=epsilon,
               times=say.number(odds(guarantee.epsilon)),
               plus=say("promise.plus", delta=delta) if guarantee.delta else "", **about)
    if guarantee.curve and guarantee.delta:
        said += " " + say("promise.also", curve=say.number(guarantee.curve.face))
    return said


def odds_of(guarantee, say):
    """Return what becomes of even odds.

    With a delta the odds of a single output may exceed e^epsilon with a larger probability than delta. Let S be the
    outputs whose odds exceed 2 e^epsilon: P(S) <= e^epsilon Q(S) + delta <= P(S) / 2 + delta, so P(S) <= 2 delta.
    """
    bounded = guarantee.is_finite and 2 * guarantee.delta < 1  # (a curve alone is no bound of odds)
    epsilon = guarantee.epsilon if bounded else guarantee.relaxed_epsilon
    if epsilon is None:
        return say("odds.curve" if guarantee.is_finite else "odds.none")
    delta = guarantee.delta if bounded else 0
    many = 2 if delta else 1
    times = odds(epsilon, many).removeprefix(" = ") or f"{'2 ' if delta else ''}e^{bound(epsilon)}"
    percent = posterior(epsilon, many)
    text = say("odds.even", times=say.number(times),
               percent=say.number(percent) if percent[0].isdigit() else say("odds.nearly"))
    if not bounded:
        text = say("odds.relaxed", relaxation=guarantee.relaxation, text=text)
    if delta:
        text += say("odds.except", delta=say.number(bound(2 * delta)))
    return text


def trust_of(parties, say):
    """Return whom one must trust in place of a curator, where several parties make a release."""
    if say.name == "en":
        return f"{parties.nobody.capitalize()}, as long as {parties.condition}."
    called, said, called_parties = say(f"parties.called.{parties.name}"), [], parties.name == "parties"
    known = called if parties.n_parties is None else f"{say.count(parties.n_parties)} {called}"
    if parties.computing:
        said.append(say("parties.two"))
    if parties.colluding is not None:
        most = "parties.plotting" if parties.computing else "parties.most"
        said.append(say(most, n=parties.colluding, parties=known))
    if parties.honest is not None:
        said.append(say("parties.honest", n=parties.honest, parties=called))
    if parties.with_server is not None and parties.with_server < parties.colluding:
        said.append(say("parties.server", n=parties.with_server))
    said += [say("parties.sums")] * parties.sums + [say("parties.follows")] * (parties.follows and called_parties)
    said += [say("parties.all_follow")] * (parties.computing or (parties.follows and not called_parties))
    condition = f" {say('parties.and')} ".join([part for part in (", ".join(said[:-1]), *said[-1:]) if part])
    return say(f"parties.trust.{'computing' if parties.computing else parties.name}", condition=condition)
