"""Histograms: how many users hold each of several categories, in the shuffle model.

    fakes.py    `ShuffledHistogram`: the user's category, and fake messages that hide it
"""

#: What its estimators are for, in the tables of the documentation.
TASK = "Frequencies of categories, shuffle model"
#: Which one to take, (if, name, because), in the order in which to ask; the tables list those that are not named here.
GUIDE = (
    ("shares of categories are wanted, and a shuffler is trusted", "ShuffledHistogram",
     "the error grows neither with users nor with categories; above an epsilon of 4 compare ShuffledEstimator"),
)
