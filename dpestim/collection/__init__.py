"""Reports that travel: one file that both sides agree on, reports as bytes, files of reports, and who counts them.

    survey.py       `Survey`: mechanism, domain, epsilon and bits of a report as a file of JSON
    file.py         its body, which follows from the client's class and parameters alone (`description.py`)
    canonical.py    JSON without floats, its canonical form and the id; `values.py`: parameters as such JSON
    wording.py      what is promised, in words for the person who is asked
    layout.py       a report as bits; `messages.py`: one report as bytes of its own, or as text

Nothing here is pickled, evaluated or imported by a name that a file says: names of classes are looked up among those of
`dpestim.local` and those that `dpestim.local.extend.register` was told.
"""

from dpestim.collection.survey import Survey

__all__ = ["Survey"]
