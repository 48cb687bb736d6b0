"""Handles of a ledger: a path, a UUID and a label of users, which travel, are equal anywhere, and are never copied."""

from dpestim.privacy import ambient


class Handle:
    """What a `Ledger` is besides its account: how it is compared, shown, cloned and pickled."""

    #: numbers of the reservations on which this handle draws, besides those of blocks
    _reservations = ()

    def __sklearn_clone__(self):
        return self

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __reduce__(self):
        return rebuilt, (type(self), self.path, self.uuid, self.users, self.durability, self._draws_on())

    def __eq__(self, other):
        return isinstance(other, Handle) and (self.uuid, self.users) == (other.uuid, other.users)

    def __hash__(self):
        return hash((self.uuid, self.users))

    def __repr__(self):
        label = f".for_users({self.users!r})" if self.users else ""
        return f"Ledger.open({self.path!r}){label}"

    @classmethod
    def _handle(cls, path, name, users, durability, reservations=()):
        ledger = cls.__new__(cls)
        ledger.path, ledger.uuid, ledger.users, ledger.durability = path, name, users, durability
        ledger._reservations = reservations
        return ledger

    def _draws_on(self):
        """Return the numbers of the reservations from which charges are taken."""
        return self._reservations or getattr(ambient.reservation_of(self), "_reservations", ())


def rebuilt(cls, path, name, users, durability, reservations=()):
    """Rebuild a pickled handle; the file is looked at when it is next used."""
    return cls._handle(path, name, users, durability, reservations)
