"""Estimates from the reports of any client: servers that count codes and make a mean or a distribution of the counts.

    collector.py     `Collector`: a server whose client is its parameter `transformer`, which pays
    mean.py          `MeanEstimator`
    distribution.py  `DistributionEstimator`, by expectation maximisation (`em.py`)
"""

#: What its estimators are for, in the tables of the documentation.
TASK = "Means and distributions from reports, local model"
