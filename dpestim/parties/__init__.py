"""Many parties who trust nobody: sums, quantiles and models.

    SecureQuantile    a quantile of the records of several owners, by the exponential mechanism inside three parties
"""
