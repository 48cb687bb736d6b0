"""The table "claim, measured, why they differ"; every figure in it comes from the rows of a run."""

import html
import textwrap
from dataclasses import asdict, dataclass
from itertools import pairwise

import numpy as np


@dataclass(frozen=True)
class Claim:
    """One line: `holds` is "yes", "in part" or "no"."""

    where: str
    claim: str
    measured: str
    holds: str
    why: str


class Claims(list):
    """The lines, as text and as a table of a web page."""

    def __str__(self):
        out = []
        for c in self:
            out += textwrap.wrap(f"{c.where}: {c.claim}", 118, subsequent_indent="    ")
            for text in (f"measured: {c.measured}", f"holds: {c.holds}. {c.why}"):
                out += textwrap.wrap(text, 118, initial_indent="    ", subsequent_indent="    ")
            out.append("")
        return "\n".join(out)

    def _repr_html_(self):
        cell = "<td style='vertical-align:top;text-align:left;white-space:normal'>"
        rows = "".join("<tr>" + "".join(f"{cell}{html.escape(text)}</td>" for text in (
            f"{c.where}. {c.claim}", c.measured, c.holds, c.why)) + "</tr>" for c in self)
        head = "".join(f"<th style='text-align:left'>{name}</th>"
                       for name in ("claim", "measured", "holds", "why they differ"))
        return f"<table class='dataframe'><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"

    def records(self):
        """Return dicts, for JSON."""
        return [asdict(c) for c in self]


class Rows(list):
    """Rows that can be picked and compared."""

    def pick(self, **wanted):
        return Rows(row for row in self if all(row.get(key) == value for key, value in wanted.items()))

    def all(self, key):
        """Return the distinct values of a key."""
        return list(dict.fromkeys(row[key] for row in self))

    def of(self, key, **wanted):
        return np.array([row[key] for row in self.pick(**wanted)], float)


def judge(results):
    """Return the table, from {experiment: rows}."""
    r = {name: Rows(rows) for name, rows in results.items() if name != "choices"}
    return Claims([
        *_frequencies(r["frequencies"], results["choices"]), _own_choices(r["own choices"]),
        _theorem_2(r["variances of frequencies"]), *_means(r["means"], r["whose gain"]),
        _theorem_4(r["variances of reports"]), *_attacks(r["frequencies"]), _low_or_high(r["low or high"]),
        _low_numbers(r["low or high numbers"]),
    ])


def span(values, digits=2):
    """Return "3.6 to 4.1"."""
    low, high = (number(v, digits) for v in (np.min(values), np.max(values)))
    return low if low == high else f"{low} to {high}"


def number(value, digits=2):
    """Return a number with so many digits, or a whole one."""
    return f"{value:,.0f}" if abs(value) >= 10**digits else f"{value:.{digits}g}"


def percent(values, digits=2):
    """Return "3.6 to 4.1 %"."""
    return f"{span(100 * np.asarray(values), digits)} %"


def compare(rows, kind, a, b, key="mse", by=np.divide, **wanted):
    """Return key of mechanism a over (or less) that of b, for every attribute or column, and every epsilon."""
    return np.concatenate([by(rows.of(key, mechanism=a, **{kind: each}, **wanted),
                              rows.of(key, mechanism=b, **{kind: each}, **wanted)) for each in rows.all(kind)])


def effect(*factors):
    """Return "gains a factor of 3.6 to 4.1": what happens to an error that is divided by these."""
    if min(factors) > 1.25:
        return f"gains a factor of {span(factors)}"
    if max(factors) < 0.8:
        return f"costs a factor of {span(1 / np.array(factors))}"
    if min(factors) > 0.8 and max(factors) < 1.25:
        return f"changes little (a factor of {span(factors)})"
    return f"changes the error by factors of {span(factors)}, to either side"


def orders(factors, order):
    """Judge a claim of so many orders of magnitude: reached but for a quarter of it; in part, but for a half."""
    if np.min(factors) >= 10 ** (0.75 * order):
        return "yes"
    return "in part" if np.max(factors) >= 10 ** (0.5 * order) else "no"


def _frequencies(f, choices):
    def compared(a, b, key="mse"):
        return compare(f, "attribute", a, b, key)

    down, up = compared("GRR", "SDGRR-25", "exact"), compared("SDGRR-25", "URR-25", "exact")
    most = [row["d"] / row["n_high"] for row in f.pick(mechanism="SDGRR-25")]
    other = {name: span([c[name] for each in choices.values() for c in each.values()])
             for name in ("GRR / SDGRR-25", "SDGRR-25 / URR-25")}
    yield Claim(
        "Figure 5", "SDGRR-25 has an error about one order of magnitude below GRR's.",
        f"GRR / SDGRR-25 = {span(down)} exactly, {span(compared('GRR', 'SDGRR-25'))} measured; on low values alone "
        f"{span(compared('GRR', 'SDGRR-25', 'mse_low'))} measured.", orders(down, 1),
        "High values are as uncertain as under GRR, so that over all values the *expected* ratio (the exact one) "
        f"cannot pass d / |X_H| = {span(most)}; measured ones scatter around it. The order of magnitude is that of the "
        "low values. Which values are high, which the paper does not say, matters little: "
        f"{other['GRR / SDGRR-25']} for the rarest or the most frequent ones (exact).")
    yield Claim(
        "Figure 5", "SDGRR-25 has an error about one order of magnitude above URR-25's.",
        f"SDGRR-25 / URR-25 = {span(up)} exactly, {span(compared('SDGRR-25', 'URR-25'))} measured.", orders(up, 1),
        "A high value's error is that of randomised response over all d values; under URR over the |X_S| sensitive "
        "ones, which for small epsilon is a factor of (d - 1) / (|X_S| - 1): less than an order. Rarest or most "
        f"frequent values high: {other['SDGRR-25 / URR-25']} (exact).")
    like = compared("SDGRR-P", "SDGRR-25")
    yield Claim(
        "Figure 5", "Personalised SDGRR has nearly the error of SDGRR-25.",
        f"SDGRR-P / SDGRR-25 = {span(like)} (median {np.median(like):.2g}) weighted by inverse variances, "
        f"{span(compared('SDGRR-P, stratified', 'SDGRR-25'))} weighted by group sizes.",
        "yes" if np.median(like) < 2 else "in part",
        "By inverse variances a low value is estimated mostly from those users who declare it low. That is right only "
        "where nobody's choice depends on the own value (D6); weights by group size need no such assumption, and have "
        "a larger error.")
    order = ["URR-25", "SDGRR-25", "SDGRR-50", "SDGRR-75", "GRR"]
    exact, seen = (np.array([compared(b, a, key) > 1 for a, b in pairwise(order)]).all(axis=0)
                   for key in ("exact", "mse"))
    yield Claim(
        "Figure 6", f"The more values are high, the larger the error: {', '.join(order)}, in this order.",
        f"Exact errors have this order at {exact.mean():.0%} of all epsilons and attributes, measured ones at "
        f"{seen.mean():.0%}; GRR / SDGRR-75 = {span(compared('GRR', 'SDGRR-75', 'exact'))} (exact).",
        "yes" if exact.all() else "no", "They do not differ.")


def _own_choices(c):
    def texts(weights):
        return " and ".join(
            f"{number(100 * row['bias'])} points (+- {number(196 * row['bias_se'])}) for {row['attribute']} "
            f"{row['value']}, of {number(100 * row['truth'])} %" for row in c.pick(weights=weights))

    apart = np.abs(c.of("bias", weights="inverse_variance") / c.of("bias_se", weights="inverse_variance"))
    return Claim(
        "Section 4.5 (D6)", "Groups of users with different settings are combined by inverse variances, equation (19).",
        f"Where users mind as many values as hide their own, estimates at epsilon {c[0]['epsilon']:g} are off, in the "
        f"mean of all surveys, by up to {texts('inverse_variance')}. Weighted by group sizes: by up to "
        f"{texts('stratified')}.",
        "no" if (apart > 5).all() else "in part",
        "People who choose by their own value are not like the others: whoever declares a value low does not hold it. "
        "Weights by group size add up what each group has, whatever made people choose. And the choice, which is "
        "published, then says something about the value.")


def _theorem_2(v):
    exact, measured = v.of("exact") / v.of("paper"), v.of("measured") / v.of("exact")
    worst = v.pick(epsilon=min(v.all("epsilon")), **{"low percent": 75})[0]
    return Claim(
        "Figure 2, Theorem 2 (D2)",
        "A low value's frequency has a variance of the order 1 / (alpha^2 n |X|): equations (12) and (13).",
        f"The exact variance is {span(exact)} times equation (12): at epsilon {worst['epsilon']:g} with 75 % low "
        f"{worst['exact']:.3g} / n against {worst['paper']:.2g} / n. Measured / exact, in the mean: "
        f"{measured.mean():.3g}. GRR / exact = {span(v.of('GRR') / v.of('exact'))}.",
        "yes" if exact.max() < 2 else "no",
        "The estimate of a low value subtracts the *estimated* share of all high ones, whose variance equation (12) "
        "leaves out. It is about (1 - alpha) / (alpha epsilon^2 n), whatever |X| is. Low values are still estimated "
        "far better than by GRR.")


def _means(m, g):
    least, most = min(m.all("epsilon")), max(m.all("epsilon"))

    def gain(a, b, epsilon=least):
        return compare(m, "column", a, b, epsilon=epsilon)

    def error(data, mechanism, estimator, key="mse"):
        return g.of(key, data=data, mechanism=mechanism, estimator=estimator)[0]

    def each(values, unit=""):
        """Return "42 (weight) and 54 (height)"."""
        return " and ".join(f"{number(v)}{unit} ({column})" for v, column in zip(values, m.all("column")))

    centred, _, along = g.all("data")
    plain, em = ("PM", "plain mean"), ("SDPM", "EM")
    finer, unbiased = ("SDPM", "EM, 100 times finer stop"), ("SDPM", "unbiased")
    default = "default of dpestim"

    def everywhere(a, b):
        """Return the error of a over that of b, on the three kinds of data."""
        return [error(data, *a) / error(data, *b) for data in g.all("data")]

    def three(values):
        return ", ".join(number(value) for value in values)

    alike = everywhere(("PM", default), ("SDPM", default))
    whole, stop = everywhere(plain, ("SDPM", default)), everywhere(em, finer)
    asked = m.pick(mechanism="asked openly-50", epsilon=least)
    low, own = each(100 * (1 - asked.of("share high")), " %"), each(100 * asked.of("share open"), " %")
    yield Claim(
        "Figure 7", f"At epsilon {least:g} SDPM-50's error is about two orders of magnitude below PM's.",
        f"PM / SDPM-50 = {each(gain('PM', 'SDPM-50'))}; with EM for both {each(gain('PM, EM', 'SDPM-50'))}. For "
        f"{g[0]['column']} in other surveys, with the data in the centre of the bounds, at one side, and there with "
        f"the low interval moved along: {three(everywhere(plain, em))} with EM, {three(everywhere(plain, finer))} with "
        f"a 100 times finer stop, {three(everywhere(plain, unbiased))} with unbiased estimates for both, "
        f"{three(whole)} with the default of dpestim for SDPM ({three(alike)} for both). No reports, just the centre "
        f"of the bounds: PM / centre = {each(gain('PM', 'centre of the bounds'))}.",
        orders(gain("PM", "SDPM-50"), 2),
        f"{_whose(whole, alike)} (1) Unbiased inversion "
        f"{effect(error(centred, 'PM', 'unbiased') / error(centred, *unbiased))} over PM, though a low user's report "
        "that is not the own cell is as noisy as PM's. (2) EM forbids negative shares: for PM that "
        f"{effect(*gain('PM', 'PM, EM'))}. (3) Low are {low}; of all users {own} report their own cell, and EM "
        "mostly reads the mean off these. As many asked openly, without any mechanism, have "
        f"{each(gain('asked openly-50', 'SDPM-50'))} times SDPM-50's error. (4) EM starts from uniform shares and "
        f"stops early. A 100 times finer stop {effect(stop[0])} where the data lie in the centre, {effect(stop[1])} at "
        f"one side, {effect(stop[2])} there with the low interval.")
    yield Claim(
        "Figure 7", "The smaller epsilon, the larger the gain.",
        f"PM / SDPM-50 = {each(gain('PM', 'SDPM-50'))} at epsilon {least:g}, {each(gain('PM', 'SDPM-50', most))} at "
        f"{most:g}.", "yes" if (gain("PM", "SDPM-50") > gain("PM", "SDPM-50", most)).all() else "in part",
        "PM's error grows as 1 / epsilon^2; the number of users who report their own cell falls as epsilon only.")
    personal, better = compare(m, "column", "SDPM-P", "SDPM-50"), compare(m, "column", "PM", "SDPM-P")
    yield Claim(
        "Figure 7", "Personalised SDPM is close to SDPM-50, and below PM.",
        f"SDPM-P / SDPM-50 = {span(personal)} (median {np.median(personal):.2g}); PM / SDPM-P = {span(better)}.",
        "yes" if np.median(personal) < 3 and np.mean(better > 1) >= 0.9 else "in part",
        "Weighted by group size here: the paper's weights leave out how many users a group has, and need choices that "
        "do not depend on values (D6). Where EM is pulled to the centre, so is every group's.")
    best = compare(m, "column", "SDPM-50", "SDPM-25") > 1, compare(m, "column", "SDPM-75", "SDPM-25") > 1
    high = [percent(m.of("share high", mechanism=f"asked openly-{p}")) for p in (25, 50, 75)]
    yield Claim(
        "Figure 8", "SDPM-25 is better than SDPM-50 and SDPM-75 at every budget.",
        f"It is so at {np.mean(best[0] & best[1]):.0%} of all epsilons and columns; SDPM-75 / SDPM-25 = "
        f"{span(compare(m, 'column', 'SDPM-75', 'SDPM-25'))}.",
        "yes" if (best[0] & best[1]).all() else "in part",
        f"A share of the *range* is not one of the people: high are {high[0]} of them under SDPM-25, {high[1]} under "
        f"SDPM-50, {high[2]} under SDPM-75. Where hardly anybody is high, nearly all may show their own cell.")
    apart = [error(data, *unbiased, "bias") / error(data, *unbiased, "bias_se") for data in g.all("data")]
    yield Claim(
        "Section 4.3 (D3)", "(It is not said that the plain mean of SDPM's reports is no estimate of the mean.)",
        f"With data and low interval around {error(along, *unbiased, 'truth'):.2g} the plain mean is off by "
        f"{error(along, 'SDPM', 'plain mean', 'bias'):.2g}, however many users there are; the unbiased estimate, on "
        f"the three kinds of data, by {span(apart)} of its standard errors.", "no",
        "E[report | x] = p' x for a low x where the low interval is symmetric: a low value that does not report itself "
        "says nothing. `MeanEstimator` undoes it.")


def _whose(whole, alike):
    """Say whose gain it is: PM's error over SDPM's by the default of dpestim, and that with the same for PM.

    In the centre of the bounds, at one side, and there with the low interval moved along.
    """
    said = {"yes": "are reached", "in part": "are reached in part", "no": "are not reached"}[orders(whole[2:], 2)]
    text = (f"Read by the default of dpestim, which has no early stop, two orders {said} far from the centre, too, "
            f"where the low interval lies with the data ({number(whole[2])}); ")
    if alike[2] > np.sqrt(whole[2]):  # more than half of the orders
        return text + f"the mechanism has most of it, {number(alike[2])} over PM under the same default."
    return text + f"the estimator has most of it, as PM under the same default leaves {number(alike[2])}."


def _theorem_4(v):
    ratios = v.of("PM") / v.of("exact")
    at = {end: span(ratios[v.of("epsilon") == end], 3) for end in (min(v.all("epsilon")), max(v.all("epsilon")))}
    return Claim(
        "Figure 4, Theorem 4 (D3)", "A low report's variance is below PM's, the more so the larger epsilon.",
        "PM / SDPM_L = " + ", ".join(f"{text} at epsilon {end:g}" for end, text in at.items()) + "; exact / equation "
        f"(15) = {span(v.of('exact') / v.of('paper'), 3)}; the bias of that report is {span(v.of('bias'))}.",
        "yes" if (ratios > 1).all() else "no",
        "Equation (15) takes the mean of the report for 0, and so leaves out p' (1 - p') x^2, which is little. The "
        "bias is not little: a small variance around a wrong mean is no gain until an estimator has undone it.")


def _attacks(f):
    same, seen = (np.abs(np.concatenate([compare(f, "attribute", f"SDGRR-{p}", "GRR", key, np.subtract)
                                         for p in (25, 50, 75)])).max() for key in ("attack_exact", "attack"))
    priors = {name: percent(f.of("attack_with_prior", mechanism=name)) for name in ("SDGRR-25", "GRR")}
    yield Claim(
        "Figure 9", "An adversary guesses holders of high values as often under SDGRR as under GRR.",
        f"Exact: a difference of {max(same, 1e-12):.0e} or less; measured: at most {100 * seen:.2g} points. Over all "
        f"values, each held as often (D9), SDGRR-25 / GRR = "
        f"{span(compare(f, 'attribute', 'SDGRR-25', 'GRR', 'attack_all'))}.", "yes" if same < 1e-12 else "no",
        "True of the holders of high values. Over everybody the adversary is right far more often, as low values say "
        f"what they are. One who knows how frequent values are is right about {priors['SDGRR-25']} of all users under "
        f"SDGRR-25, {priors['GRR']} under GRR, and {percent(f.of('blind_with_prior', mechanism='GRR'))} without any "
        "report.")
    points = compare(f, "attribute", "URR-25", "SDGRR-25", "attack", np.subtract)
    share = 1 - compare(f, "attribute", "SDGRR-25", "URR-25", "attack")
    known = compare(f, "attribute", "URR-25", "SDGRR-25", "attack_known_high", np.subtract)
    yield Claim(
        "Figure 9", "With 25 % high values the attack succeeds about 30 % less often on SDGRR than on URR.",
        f"{span(100 * points)} percentage points less often, which is {percent(share)} of URR's.",
        "yes" if points.min() < 0.3 < points.max() else "in part",
        "Meant in percentage points, it is within the range; as a share it is more. Most of it is that a URR report of "
        "a sensitive value says that the value is sensitive: against whoever knows that somebody's value is high, "
        f"URR-25 and SDGRR-25 are {span(100 * known)} points apart.")
    first, second = sorted(f.all("attribute"), key=lambda a: f.pick(attribute=a)[0]["d"])
    more = np.subtract(*(f.of("attack", attribute=a, mechanism="SDGRR-25") for a in (first, second)))
    yield Claim(
        "Figure 9", "The attribute with fewer values is attacked more successfully.",
        f"{first} minus {second}: {span(100 * more)} points.", "yes" if (more > 0).all() else "no",
        "They do not differ: e^epsilon / (d + e^epsilon - 1).")


def _low_or_high(c):
    here = c.pick(percent=25)
    small = here.pick(epsilon=min(c.all("epsilon")))
    return Claim(
        "Section 4.1 (D5)", "No adversary tells reports of high values from those of low ones with a high probability.",
        f"Given one low and one high value, a report of SDGRR-25 at epsilon {small[0]['epsilon']:g} lets the adversary "
        f"guess {percent(small.of('exact'), 3)} right (measured {percent(small.of('measured'), 3)}); plain local "
        f"privacy allows {percent(small.of('bound'), 3)}. A low value's own report is {span(here.of('ratio'), 3)} "
        f"times likelier from its holder, and {percent(here.of('proof'))} of a high value's reports prove that the "
        "given low one is not held.", "no" if (small.of("exact") > small.of("bound")).all() else "in part",
        "Definition 3 bounds no ratio between a low and a high value at a low output. For SDGRR it is |X_L| + "
        "e^epsilon - 1 in one direction and infinite in the other.")


def _low_numbers(n):
    whole, cells, few = (n.pick(form=form) for form in ("continuous", "32 cells", "2 cells"))
    return Claim(
        "Section 4.1 (D4)", "Low values are no longer leaked directly, as high ones may report the same outputs.",
        f"Continuous: whoever reads a low value off a report is right in {percent(whole.of('certain'), 4)} of all "
        f"cases, and can do so with {percent(whole.of('recognised'))} of the low users. With 32 cells: "
        f"{percent(cells.of('certain'), 3)} (promised: epsilon {span(cells.of('promised'), 3)}), with 2 cells: "
        f"{percent(few.of('certain'), 3)} (epsilon {span(few.of('promised'), 3)}).",
        "no" if whole.of("certain").min() == 1 else "yes",
        "A low value has an atom where high ones have a density: a report that repeats, or lies on the data's own "
        "lattice, is a low value. The discretised form gives cells to both, and so a finite ratio, the smaller the "
        "fewer cells.")
