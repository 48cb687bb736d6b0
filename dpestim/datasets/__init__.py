"""Real data to try dpestim on, shipped in the package.

`load_us_military`   every member of the US armed forces, 1,414,593 people: categories
`load_yrbss`         12,579 US teenagers: heights and weights
"""

from typing import TYPE_CHECKING

from dpestim import lazy

if TYPE_CHECKING:  # (what editors read: they do not run `lazy`)
    from dpestim.datasets.loaders import load_us_military, load_yrbss

__getattr__, __dir__ = lazy.attach(__name__, {
    "loaders": "load_us_military load_yrbss",
})

__all__ = ["load_us_military", "load_yrbss"]
