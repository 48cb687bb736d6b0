"""Domains with an order, and domains too large to be listed, from reports of views: each user reports one, drawn first.

    levels      which tree stands over the values of a column, and which law each of its levels has
    ranges      `RangeEstimator`: shares of ranges, cumulative shares and quantiles from trees
"""

#: What its estimators are for, in the tables of the documentation.
TASK = "Ranges and large domains, local model"
#: Which one to take, (if, name, because), in the order in which to ask.
GUIDE = (
    ("the share of users between any two values is wanted", "RangeEstimator",
     "one report answers all ranges and quantiles, each with an interval"),
)
