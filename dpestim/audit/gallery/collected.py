"""All published mistakes of the gallery, audited."""

from functools import lru_cache

from dpestim.audit.gallery.central import central_noise
from dpestim.audit.gallery.floats import floating_point
from dpestim.audit.gallery.learning import objective_perturbation
from dpestim.audit.gallery.local import local_reports
from dpestim.audit.gallery.mistake import Mistakes
from dpestim.audit.gallery.sparse import sparse_vectors
from dpestim.audit.gallery.streams import rows_of_streams


@lru_cache(maxsize=1)
def mistakes():
    """Return the gallery of broken mechanisms: published mistakes, and what each really loses.

    Each was claimed to be private, and is compared with itself on two neighbouring inputs, by `max_loss` and
    `hockey_stick`. What they find is a lower bound of the loss: more than was claimed. The mechanism as it should be
    passes the same audit (`repaired`). Nothing is released, and no data are read.

    Returns
    -------
    Mistakes
        A sequence of `Mistake`, which prints as a table.

    Notes
    -----
    A second or so, once: the result is kept. Losses of discrete laws are exact, those of densities are found by
    quadrature (1e-6, relatively), and the delta of Laplace noise in floating point is the share of 10,000 outputs that
    the other input cannot have, of a fixed seed (its standard error is below 0.005; its epsilon is infinite because
    there is one such output).

    References
    ----------
    Each entry names its source. The derivations: ``mistakes.md``.

    Examples
    --------
    >>> from dpestim.audit import mistakes
    >>> gallery = mistakes()
    >>> all(m.found.epsilon > m.claimed.epsilon for m in gallery)
    True
    >>> gallery[1]
    <Sparse vector, noise that ignores the cut-off: claimed 1, 0, found 7.75, 2.1e-09>
    >>> gallery[1].instead
    'dpestim.central.SparseVector, with noise for as many answers "above" as are allowed'
    """
    return Mistakes([*sparse_vectors(), *central_noise(), *floating_point(), *local_reports(),
                     *rows_of_streams(), *objective_perturbation()])
