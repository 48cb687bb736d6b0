"""Neighbouring data that an audit tries: those that are given, or the extremes of what is declared."""


def checked_pairs(pairs):
    """Return a list of (data, neighbour)."""
    if not isinstance(pairs, list | tuple) or not pairs or not all(
            isinstance(pair, list | tuple) and len(pair) == 2 for pair in pairs):
        raise ValueError("pairs must be a list of pairs of neighbouring data, such as [(0, 1)]")
    return [tuple(pair) for pair in pairs]
