"""Mutation tests of the checks: slips of an honest newcomer, at least ten for each family; no family may pass one.

`tests/common/broken` has a twin for each check. This package asks the other question: does `check_mechanism` as a whole
reject what a newcomer writes by mistake, whichever check finds it?
"""

from newcomers import frequencies, models, numbers, shuffle, statistics, synthesis

FAMILIES = {module.__name__.rpartition(".")[2]: module.SLIPS
            for module in (frequencies, numbers, statistics, models, shuffle, synthesis)}
