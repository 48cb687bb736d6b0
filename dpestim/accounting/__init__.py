"""Accounts: what is spent, what is left, and what follows when guarantees are put together.

    Ledger             a budget in a SQLite file; every release is entered before its words are drawn
    PrivacyGuarantee   adds (basic composition), compares, converts between neighbouring relations

The ledger's file is in `dpestim.privacy.ledger`, below the mechanisms, so that every estimator can be charged.
"""

from dpestim.exceptions import BudgetExceededError, LedgerError
from dpestim.privacy import PrivacyGuarantee
from dpestim.privacy.ledger import Ledger

__all__ = ["BudgetExceededError", "Ledger", "LedgerError", "PrivacyGuarantee"]
