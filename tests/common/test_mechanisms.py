"""Every mechanism of the registry, put through every check with every setting it brings."""

import re
import sys
from functools import lru_cache

import pytest

from dpestim.base import all_estimators
from dpestim.statistics import calibrated_noise
from dpestim.statistics.base import DPStatistic
from dpestim.testing import (
    balls,
    central,
    check_mechanism,
    choices,
    frequencies,
    law,
    mechanism_checks,
    numbers,
    queries,
)

#: Exact laws, samples of them, and what is heard of a release with other noise: scikit-learn has no say in any.
MODULES = (law, frequencies, numbers, balls, central, choices, queries)
MORE = """
    answers_follow_law answers_keep_epsilon answers_law boosting_law bound_lies_above_the_truth
    clipped_counts_have_noise clipped_counts_keep_epsilon columns_are_drawn columns_share_epsilon
    counts_keep_epsilon coverage_follows_law coverage_keeps_epsilon density_counts_have_the_stated_error
    density_splits_keep_epsilon edges_keep_epsilon estimates_cover generator_keeps_epsilon generator_samples
    graph_follows_law graph_keeps_epsilon intervals_hold items_follow_law items_keep_epsilon joint_mean_is_exact
    lists_each_has_noise lists_follow_law lists_keep_epsilon many_rows_keep_epsilon means_cover
    messages_follow_their_law mixed_estimates model_keeps_epsilon model_noise nodes_follow_law nodes_keep_epsilon
    numbers_follow_their_edges numbers_have_noise_of_their_own pair_estimates pair_law promises ratings_keep_epsilon
    release_seeds reports_say_the_direction rounds_learn row_by_enumeration rows_follow_their_law rows_keep_epsilon
    shuffled_law standard_errors_are_those_seen statistic_follows_its_law statistic_keeps_epsilon
    statistic_shows_what_was_drawn stream_follows_law stream_keeps_epsilon synthetic_answers threads totals
    trajectories_have_the_noise_of_their_tables trajectories_keep_epsilon tree_law worst_ratio
"""
#: Studies of accuracy, and containers: `make test` sees them in the first setting, as laws, and `make ci-test` in all.
ONCE = """
    estimates_are_unbiased intervals_cover intervals_hold rounds_learn standard_errors_are_those_seen estimates_cover
    mixed_estimates mean_of_vectors model_containers
"""
#: Descriptions of surveys, and laws that are compared as integers or formulas.
PLAIN = """
    answers_keep_epsilon choice_keeps_epsilon many_rows_keep_epsilon noise_is_a_distribution noise_keeps_epsilon
    noise_keeps_its_curve rows_follow_their_law rows_keep_epsilon survey_refuses_changes survey_survives_noise
    trajectories_keep_epsilon
"""
OF_ONE_SETTING = {f"check_{name}" for name in ONCE.split()}
LAW_CHECKS = {check.__name__ for module in MODULES for check in module.LAW_CHECKS}
LAW_CHECKS |= {f"check_{name}" for name in MORE.split()}
FIRST = OF_ONE_SETTING | LAW_CHECKS
NO_KERNEL = {f"check_{name}" for name in PLAIN.split()}
#: Whose surveys kernels read: `NO_KERNEL` does not hold of them.
SURVEYS_OF_KERNELS = {"local.LDPSGDClassifier", "local.LDPSGDRegressor", "local.RectangleEstimator"}


def cases():
    """Yield every check of every setting; all checks of a setting go to one worker (`_units`) and share samples."""
    for name, cls in all_estimators():
        seen = set()
        for k, params in enumerate(cls._test_params()):
            for check, _ in mechanism_checks(cls(**params)):
                # (who meets arrays is seen in two settings by the debug build and the oldest scikit-learn, laws in all
                # settings by the debug build; some laws have a check that the first settings have not)
                law, later = check in LAW_CHECKS or k > 1, k > 0 and check in seen
                marks = [pytest.mark.law] * law + [pytest.mark.ci] * later
                marks += [pytest.mark.second] * (later and (law or check not in FIRST))
                marks += [pytest.mark.no_kernel] * (check in NO_KERNEL and name not in SURVEYS_OF_KERNELS)
                seen.add(check)
                yield pytest.param(cls, k, check, id=f"{name}-{k}-{check}", marks=marks)


CASES = list(cases())


@lru_cache(maxsize=1)
def checks_of(cls, setting):
    """Return the checks of one setting: their samples live until another setting has its turn.

    No fixture: pytest from 9.2 on makes one anew for each test where its parameter cannot be hashed, and then every
    check draws samples of its own, unseen.
    """
    return dict(mechanism_checks(cls(**cls._test_params()[setting])))


@pytest.mark.parametrize(("cls", "setting", "check"), CASES)
def test_mechanism(cls, setting, check):
    checks_of(cls, setting)[check]()


def test_every_check_of_a_mechanism_is_made_without_the_mark():
    """CONTRIBUTING.md promises it: of some laws a later setting is the first to have one, such as Duchi's of rows."""
    every = {(case.values[0], case.values[2]) for case in CASES}
    plain = {(case.values[0], case.values[2]) for case in CASES if all(mark.name != "ci" for mark in case.marks)}
    assert every == plain


def test_the_debug_build_runs_every_law_of_a_later_setting():
    """It leaves out what is marked `ci` and not `second`, which is for studies of accuracy."""
    marks = {case.id: {mark.name for mark in case.marks} for case in CASES}
    laws = {name: own for name, own in marks.items() if {"ci", "law"} <= own}
    assert len(laws) > 2000
    assert all("second" in own for own in laws.values())


def test_the_checks_of_a_setting_share_samples():
    cls = dict(all_estimators())["local.GRRFrequencyEstimator"]
    first, second = (checks_of(cls, 0)[check].args[0] for check in ("check_variance", "check_estimates_are_unbiased"))
    assert first.columns[0].reports is second.columns[0].reports
    assert checks_of(cls, 0) is checks_of(cls, 0) is not checks_of(cls, 1)


@pytest.mark.parametrize(("name", "cls"), all_estimators())
@pytest.mark.no_kernel
def test_what_a_mechanism_brings(name, cls):
    proof = cls._proof()
    assert proof.exists(), f"{name} has no proof file {proof.name}"
    text = proof.read_text(encoding="utf-8")
    for part in ("## Claim", "## Assumptions", "## Proof"):
        assert part in text, f"the proof of {name} lacks {part}"
    for part in ("**Privacy.**", "**Utility.**", "**Complexity.**", "Parameters\n", "Attributes\n", "Raises\n",
                 "References\n", "Examples\n"):
        # (a title right below a line of text is no title for what makes pages of docstrings)
        found = re.search(rf"\n\n *{re.escape(part)}", cls.__doc__)
        assert found, f"the docstring of {name} lacks {part}, or a blank line before it"
    assert len(cls._test_params()) >= 2


def test_the_registry_is_what_is_expected():
    names = {name for name, _ in all_estimators()}
    assert {"central.LaplaceMechanism"} <= names
    assert {"local.GRRFrequencyEstimator", "local.OUEFrequencyEstimator", "local.OLHFrequencyEstimator"} <= names
    counts = {len(mechanism_checks(cls(**cls._test_params()[0]))) for _, cls in all_estimators()}
    assert counts == {3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 16, 18, 19, 23, 31, 32, 35}
    assert len(CASES) >= sum(len(cls._test_params()) * 5 for _, cls in all_estimators())
    assert {case.values[2] for case in CASES} >= LAW_CHECKS | OF_ONE_SETTING


def test_check_mechanism_runs_them_all():
    cls = dict(all_estimators())["local.BinaryFrequencyEstimator"]
    assert len(check_mechanism(cls(1.0, categories=[["x", "y"]]))) == 35


def test_where_noise_may_be_normal_it_is_in_some_setting(monkeypatch):
    """Else what a record moves in squares is checked nowhere: Laplace noise has no use for it."""
    plain, drawn = calibrated_noise.noise_for, {}

    def noise_for(epsilon, delta, *most):
        noise = plain(epsilon, delta, *most)
        if delta:
            drawn.setdefault(name, set()).add(type(noise.law).__name__)
        return noise

    estimators = all_estimators()
    for module in [m for key, m in sys.modules.items() if key.startswith("dpestim.")]:
        if getattr(module, "noise_for", None) is plain:
            monkeypatch.setattr(module, "noise_for", noise_for)
    monkeypatch.setattr(DPStatistic, "_noise_for", staticmethod(noise_for))
    for name, cls in estimators:  # noqa: B007 (`noise_for` looks at it)
        for params in cls._test_params() if "delta" in cls._get_param_names() and hasattr(cls, "fit") else ():
            if params.get("delta"):
                est = cls(**params)
                X, y = est._test_data(40)
                est.fit(X, *() if y is None else (y,))
    assert len(drawn) > 10
    lost = [name for name, laws in drawn.items() if "RoundedGaussianLaw" not in laws]
    assert not lost, f"{lost} need a setting with more columns, or a larger delta"
