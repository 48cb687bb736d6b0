"""The gallery of broken mechanisms: published mistakes, and what each really loses, computed.

    mistakes   all of them, audited on two neighbours

Nothing here draws noise for a release: an entry is laws of outputs on neighbouring data, as dicts or densities, and a
program that makes the mistake.

* `collected.py`  all of them
* `mistake.py`   what an entry is, and how its loss is found
* `sparse.py`    five sparse vector techniques
* `central.py`   noise on answers: the wrong amount of it
* `floats.py`    noise from machine numbers
* `local.py`     reports of single users
* `streams.py`   rows of a stream, and steps without a publication
* `learning.py`  objective perturbation
* `programs.py`  the mistakes as programs, for audits of outputs and for searches

The derivations are in ``mistakes.md``.
"""

from typing import TYPE_CHECKING

from dpestim import lazy

if TYPE_CHECKING:  # (what editors read: they do not run `lazy`)
    from dpestim.audit.gallery.collected import mistakes
    from dpestim.audit.gallery.mistake import Mistake

__getattr__, __dir__ = lazy.attach(__name__, {
    "collected": "mistakes",
    "mistake": "Mistake",
})

__all__ = ["Mistake", "mistakes"]
