"""Open ``with`` blocks: which are open in the process, and which of them this place can see.

A block that is left out of order, in another thread or by a generator that is closed late, closes itself and no other.
"""

import threading
from contextvars import ContextVar


class Blocks:
    """The open blocks of one kind, each with a value."""

    def __init__(self, name):
        self._here = ContextVar(name, default=())  # those of this context, innermost last
        self.are_open = []  # falsy where nobody need ask about blocks, as in most places
        self._lock = threading.Lock()

    def enter(self, value):
        """Open a block and return its token."""
        token = [value]
        with self._lock:
            self.are_open.append(token)
        self._here.set((*self._seen(), token))
        return token

    def leave(self, token):
        """Close the block of a token."""
        with self._lock:
            self.are_open = [t for t in self.are_open if t is not token]
        self._here.set(self._seen())

    def token_of(self, value):
        """Return the token of the innermost open block with this value: of this context, else of any; or None."""
        for tokens in (self._seen(), self.are_open):
            for token in reversed(tokens):
                if token[0] is value:
                    return token
        return None

    def innermost(self, default=None):
        """Return the value of the innermost block that this place can see."""
        if not self._here.get():  # (most places are in no block, and ask often)
            return default
        tokens = self._seen()
        return tokens[-1][0] if tokens else default

    def seen(self):
        """Return the values of the blocks that this place can see, innermost last."""
        return tuple(token[0] for token in self._seen()) if self._here.get() else ()  # (most places are in no block)

    def values(self):
        """Return the values of all blocks that are open anywhere in the process."""
        return [token[0] for token in self.are_open] if self.are_open else []

    def _seen(self):
        tokens = self._here.get()
        return tokens and tuple(token for token in tokens if any(token is t for t in self.are_open))
