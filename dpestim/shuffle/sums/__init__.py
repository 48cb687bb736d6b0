"""Sums: messages about one number a user, and what all of them add up to.

    law.py      `SumLaw`: a total of positions between the bounds, and its variance
    estimator.py  `SumProtocol`: sums and means of columns of numbers, with errors
    boolean.py  one bit a user; manybits.py  many bits a user; levels.py  one level, or several
    ikos.py     shares that only tell their sum (shares.py: how many; polya.py: each user's part of the noise)
    real.py     `RealSum`, by any of the protocols
"""

#: What its estimators are for, in the tables of the documentation.
TASK = "Sums and means, shuffle model"
#: Which one to take, (if, name, because), in the order in which to ask; the tables list those that are not named here.
GUIDE = (
    ("yes/no answers of users are to be counted", "BooleanSum", "one bit a user; the error does not grow with n"),
    ("numbers are to be added up", "RealSum", "the error does not grow with n; or one message a user"),
)
