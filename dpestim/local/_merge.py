"""What two aggregates must have in common, and must not, before their counts are added."""


def check_other(mine, other, users):
    """Raise ValueError unless `other` is another aggregate of the same kind that has seen data."""
    if users not in ("disjoint", "same"):
        raise ValueError("users must be 'disjoint' or 'same'")
    if other is mine:
        raise ValueError("other must be another aggregate: this one's users would be counted twice")
    if type(other) is not type(mine):
        raise ValueError(f"other must be a {type(mine).__name__}")
    if not other._n_users:
        raise ValueError("other must have seen data (call fit, partial_fit or aggregate on it first)")


def check_rows(mine, other, my_names, their_names):
    """Raise ValueError where the columns differ by name, or where both saw rows of one seed at the same positions."""
    if my_names is not None and their_names is not None and list(my_names) != list(their_names):
        raise ValueError("other must have counted the same columns in the same order, by name")
    for name, start, stop in mine._seeds:
        if any(name == n and start < e and s < stop for n, s, e in other._seeds):
            raise ValueError("other repeats the seeded noise of this aggregate: use different seeds or none")
