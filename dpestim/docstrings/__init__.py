"""What documentation reads of classes: texts that many of them share, and the signature of what makes one.

    glossary   parameters and attributes that mean the same in many classes
    local      sections of parameters and attributes of clients and of what collects for them
    central    ... of mechanisms of the central model and of the shuffle model
    filling    puts them into docstrings, those of a class when they are read
    signature  the signature of a class, which is that of its `__init__`
"""

from dpestim.docstrings.filling import Documented
from dpestim.docstrings.signature import SignatureOfInit

__all__ = ["Documented", "SignatureOfInit"]
