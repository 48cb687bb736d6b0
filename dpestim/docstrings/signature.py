"""The signature of what makes an estimator or a law."""

import inspect


class SignatureOfInit:
    """The signature of `__init__`, for classes with a general `__new__`, which some readers of signatures ask first.

    It is found anew for each sub-class, where it is asked for.
    """

    def __get__(self, instance, owner):
        if instance is not None:
            raise AttributeError("__signature__")  # calling an instance is another thing
        init = inspect.signature(owner.__init__)
        return init.replace(parameters=list(init.parameters.values())[1:])
