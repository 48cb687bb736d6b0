"""Auditing: what releases tell an adversary, computed from the exact laws and measured on reports.

    BayesianAdversary   guesses a user's value from one report: how often it is right, expected and measured

What compares with raw data is not private: it is for whoever holds them, and says so.
"""

from dpestim.audit.adversary import BayesianAdversary, Success

__all__ = ["BayesianAdversary", "Success"]
