"""Reports that travel: one file that both sides agree on, reports as bytes, files of reports, and who counts them.

    survey.py       `Survey`: mechanism, domain, epsilon and bits of a report as a file of JSON
    file.py         its body, which follows from the client's class and parameters alone (`description.py`)
    canonical.py    JSON without floats, its canonical form and the id; `values.py`: parameters as such JSON
    wording.py      what is promised, in words for the person who is asked
    layout.py       a report as bits; `messages.py`: one report as bytes of its own, or as text
    collector.py    `Collector`: counts of what arrives, each report once; `sources.py`: files, whole or growing,
                    `store.py`: the state file, `merging.py`: those of several machines
    incoming.py     what is wrong with a report, and the counts of those with which nothing is
    batches.py      reports as Arrow tables and Parquet; `rows.py`: as CSV and JSON lines; `privatizing.py`: a CSV file
                    of raw rows to a Parquet file of reports
    hitters_plan.py `plan_heavy_hitters`: which frequent values are found, in the local, shuffle and central model
    ranges_plan.py  `plan_ranges`: errors of ranges, in the local, shuffle and central model
    tables_plan.py  `plan_tables`: errors of columns and of joint tables, in the local, shuffle and central model
    compared_models.py  what the three plans share

Nothing here is pickled, evaluated or imported by a name that a file says: names of classes are looked up among those of
`dpestim.local` and those that `dpestim.local.extend.register` was told.
"""

from typing import TYPE_CHECKING

from dpestim import lazy

if TYPE_CHECKING:  # (what editors read: they do not run `lazy`)
    from dpestim.collection.collector import Collector
    from dpestim.collection.hitters_plan import HitterPlan, HitterRow, plan_heavy_hitters
    from dpestim.collection.privatizing import privatize_csv
    from dpestim.collection.ranges_plan import RangePlan, RangeRow, plan_ranges
    from dpestim.collection.survey import Survey
    from dpestim.collection.tables_plan import TablePlan, TableRow, plan_tables

__getattr__, __dir__ = lazy.attach(__name__, {
    "collector": "Collector",
    "hitters_plan": "HitterPlan HitterRow plan_heavy_hitters",
    "privatizing": "privatize_csv",
    "ranges_plan": "RangePlan RangeRow plan_ranges",
    "survey": "Survey",
    "tables_plan": "TablePlan TableRow plan_tables",
})

__all__ = ["Collector", "HitterPlan", "HitterRow", "RangePlan", "RangeRow", "Survey", "TablePlan", "TableRow",
           "plan_heavy_hitters", "plan_ranges", "plan_tables", "privatize_csv"]
