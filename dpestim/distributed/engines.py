"""Which engine holds the data: the parts of any that is known. (An engine itself is imported where it is used.)"""

from collections.abc import Iterable
from os import PathLike

import numpy as np

from dpestim.distributed.on_dask import DaskParts
from dpestim.distributed.on_spark import SparkParts
from dpestim.distributed.parts import Batches, Files
from dpestim.inputs.frames import is_frame


def parts_of(data, y=None, users=None, columns=None):
    """Return the parts of data of any engine that is known, or raise ValueError."""
    # (by module first: a DataFrame of Spark Connect has an attribute of any name)
    module = type(data).__module__.split(".")[0]
    if module in ("dask", "dask_expr"):
        return DaskParts(data, y, users, columns)
    if module == "pyspark":
        return SparkParts(data, y, users, columns)
    if hasattr(data, "answer") and hasattr(data, "example"):
        return data
    names = data if isinstance(data, list | tuple) and data else [data]
    if hasattr(data, "get_fragments") or all(isinstance(name, str | PathLike) for name in names):
        return Files(data, y, users, columns)
    if is_frame(data) or isinstance(data, np.ndarray) or not isinstance(data, Iterable):
        raise ValueError("data must be in parts: a list of frames or arrays, a pattern of Parquet files, a "
                         "pyarrow.dataset, or data of Dask or Spark. Rows of one frame or array go to fit of the "
                         "estimator itself")
    return Batches(data, y, users, columns)
