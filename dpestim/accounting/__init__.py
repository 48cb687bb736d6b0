"""Accounts: what was spent, and what is left.

    Ledger   a budget in a SQLite file; every release is entered before its words are drawn

What a release promises is a `dpestim.privacy.PrivacyGuarantee`, which adds (basic composition), compares, converts. The
ledger itself is in `dpestim.privacy.ledger`, below the mechanisms, so that every estimator can be charged.
"""

from dpestim.exceptions import BudgetExceededError, LedgerError
from dpestim.privacy.ledger import Ledger

__all__ = ["BudgetExceededError", "Ledger", "LedgerError"]
