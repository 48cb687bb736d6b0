"""
============================================
What k-anonymity hides, and what it does not
============================================

A table is k-anonymous if each combination of what a stranger may know of a person stands in it at least k times. That
is a property of one table. Here two tables of the same 4,000 members of the US forces are made k-anonymous by Mondrian,
and read: first each alone, then both together. Nothing else is used, and no computation is hard.
"""

# %%
# Two releases of the same people
# -------------------------------
# One table generalises branch, gender and rank, the other race, ethnicity and rank. Both leave the grade (enlisted,
# officer, warrant officer) as it is, which stands for what is to stay secret.
import matplotlib.pyplot as plt

from dpestim.anonymity import Mondrian, certainty_penalty, homogeneity_attack, intersection_attack
from dpestim.datasets import load_us_military
from dpestim.statistics import contingency_table

people = load_us_military(as_frame=True).frame.sample(4000, random_state=0).astype({"hisp": str, "rank": int})
known = [["branch", "gender", "rank"], ["race", "hisp", "rank"]]
sizes = [2, 5, 10, 25, 50, 100]
read, lost = {"first table": [], "second table": [], "both together": []}, []
for k in sizes:
    makers = [Mondrian(k, quasi_identifiers=names, cuts="strict") for names in known]
    tables = [maker.fit_transform(people) for maker in makers]
    attacks = [homogeneity_attack(table, names, "grade") for table, names in zip(tables, known)]
    attacks.append(intersection_attack(tables, known, "grade"))
    for shares, attack in zip(read.values(), attacks):
        shares.append(attack.share)
    lost.append(certainty_penalty(people, makers[0].groups_, known[0]))
    print(f"k = {k:3d}: {attacks[-1]}; detail lost in the first table: {lost[-1]:.2f}")

# %%
# Whose secret is known for sure
# ------------------------------
# A person's class is found by what is known of the person. If all of it have one grade, that is the person's: no
# generalisation prevents this, as k counts rows and not secrets. And where a class of each table has several grades,
# only what they have in common is left. Each table alone may be l-diverse: the two together need not be.
figure, axes = plt.subplots(figsize=(7, 4))
for (name, shares), style in zip(read.items(), ("s--", "o--", "d-")):
    axes.plot(sizes, [100 * share for share in shares], style, label=name)
axes.set(xscale="log", xticks=sizes, xticklabels=sizes, xlabel="k", ylabel="% of people whose grade is known for sure",
         ylim=(0, None), title="k-anonymous tables, read")
axes.legend()
figure.tight_layout()

# %%
# What a private release does instead
# -----------------------------------
# A differentially private table of rank and grade says more about the forces than either of the two, and nothing for
# sure about anybody: no released number rules out any grade of any person. For whoever knows everybody else's row, the
# odds between any two grades of a person change by at most a factor of e^epsilon; with a second private release of the
# same epsilon, of whatever, by at most e^(2 epsilon). That is what k-anonymity cannot say. (What is true of all the
# forces, everybody may learn, and a stranger who believes that all have one grade learns a lot about each: that is
# what the table is for, and taking part in it or not makes no difference.)
result = contingency_table(people[["rank", "grade"]], epsilon=1.0, random_state=0, categories=[
    list(range(1, 12)), ["enlisted", "officer", "warrant officer"]])
print(result.privacy)
