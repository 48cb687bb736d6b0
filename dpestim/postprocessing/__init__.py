"""Post-processing of frequency estimates: functions of released results, which cost no privacy.

Each takes an array of unbiased estimates of one column (which may be negative and need not sum to 1) and the array of
their standard errors, and returns an array of the same length. All but `norm` and `tree_consistency` trade bias for a
smaller error. Every one has its name for ``postprocess=`` of a frequency estimator, too, which tells it what else it
takes from the law.

    simple.py      base_pos, post_pos, base_cut, norm, norm_mul, norm_cut: cut off, add, multiply
    simplex.py     norm_sub, mle_apx: the nearest probability vector, in plain distance and in units of the noise
    priors.py      calibrate, power, power_ns: posterior means under a prior that the estimates choose
    likelihood.py  ibu: maximum likelihood, by the law itself (`em.py` has the iterations)
    order.py       isotonic, tree_consistency: a public order of the values, a tree of sums
    trees.py       trees of which each level has one variance: least squares, and exact variances of ranges
    inputs.py      what all of them check
    entropy.py     the model of largest entropy that is closest to noisy tables, and `junction.py`, its trees
    shrinkage.py   what classes say apart from all rows, for models: how much of it is more than noise

The names of the first ten are those of Wang, Lopuhaä-Zwakenberg, Li, Skoric and Li, "Locally differentially private
frequency estimation with consistency", NDSS 2020, section 4.
"""

from typing import TYPE_CHECKING

from dpestim import lazy

if TYPE_CHECKING:  # (what editors read: they do not run `lazy`)
    from dpestim.postprocessing.likelihood import ibu
    from dpestim.postprocessing.order import isotonic, tree_consistency
    from dpestim.postprocessing.priors import calibrate, power, power_ns
    from dpestim.postprocessing.simple import base_cut, base_pos, norm, norm_cut, norm_mul, post_pos
    from dpestim.postprocessing.simplex import mle_apx, norm_sub

__getattr__, __dir__ = lazy.attach(__name__, {
    "likelihood": "ibu",
    "order": "isotonic tree_consistency",
    "priors": "calibrate power power_ns",
    "simple": "base_cut base_pos norm norm_cut norm_mul post_pos",
    "simplex": "mle_apx norm_sub",
})

__all__ = ["base_cut", "base_pos", "calibrate", "ibu", "isotonic", "mle_apx", "norm", "norm_cut", "norm_mul",
           "norm_sub", "post_pos", "power", "power_ns", "tree_consistency"]
