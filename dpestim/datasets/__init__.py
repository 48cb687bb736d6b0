"""Real data to try dpestim on, shipped in the package.

`load_us_military`   every member of the US armed forces, 1,414,593 people: categories
`load_yrbss`         12,579 US teenagers: heights and weights
"""

from dpestim.datasets.loaders import load_us_military, load_yrbss

__all__ = ["load_us_military", "load_yrbss"]
