"""How fast dpestim is, beside NumPy and beside the machine.

Run from the root of the repository::

    python -m benchmarks                  # the standard run: 60 lines, 80 s of the processor, printed as measured
    python -m benchmarks words fits       # some in full, by the names of the files
    python -m benchmarks --all            # all in full, some 440 rows
    python -m benchmarks --quick          # all in small sizes; proves that everything runs, judges no target
    python -m benchmarks --record         # keeps the rows in benchmarks/history; benchmarks.history compares records
    python -m benchmarks.history          # what became slower since the record before; --write writes the page
    python -m benchmarks.scale            # how fits of twelve estimators grow; writes docs/_static/scale.json
    python -m benchmarks.trust_models     # errors of six problems under four kinds of trust; --write writes the page
    make peers ADULT=FILE                 # other packages, in environments of their own: README's table, and a page
    python -m benchmarks --output FILE    # where the same rows go as JSON (default benchmarks/results/latest.json)

Rows are printed and written as they come, so an interrupted run keeps them.
A row has our time, the time of a plain NumPy (or pandas) baseline, their ratio, the target for
that ratio and whether it was met, and the share of the machine's limit that we reach. A row that misses its target
stays.

* **Baselines** are written as a good NumPy user would write them: vectorised, in blocks that fit the cache, of the same
  law (at least to the precision of a float32). Where our algorithm itself can be written in NumPy and is faster
  there, it is a second baseline, called "our algorithm in NumPy", which is shown and not judged. Each baseline is
  checked in every run before its time counts: counts must equal ours, and random reports must have the same mean
  counts, each category and all of them together within six standard deviations.
* **Times** are medians of interleaved repeats (A B A B ...), after a warm-up, without the garbage collector, in one
  thread. Through the public verbs: ours includes checking and encoding X, which baselines mostly need not do.
* **Fresh pages** are part of the time of results above 32 MB, of ours and of the baselines; smaller ones reuse memory,
  as in a process that has run for a while. The first calls of a fresh process are slower.
* **Limits** are measured between the same repeats: "memory" is the read bandwidth of a NumPy sum over an array far
  larger than the cache, "keystream" the rate of AES-256 in counter mode (GCM's where that is faster) into one buffer,
  "vector" the operations on 32-bit lanes a second of a single-precision matrix product, a multiply-add being two (a
  proxy: float pipes are not integer pipes).
  The share is the time that the row's unavoidable bytes or lane operations would take, divided by our time.
  "reads" is a NumPy sum of the row's own data, as often as they must be read.
* **Threads** stand beside what two threads of this machine gain, measured in the same repeats: in drawing keystream, in
  vector arithmetic and in reading memory. Where SHA-256 does not scale (five attempts), the machine was busy or has no
  second core, and the row is not judged.
* **Memory** is the kernel's high-water mark of the resident set during `fit` in a fresh process, reset when the input
  exists. (Not ``ru_maxrss``: a child inherits its parent's through fork and exec.)

How *accurate* mechanisms are is another question. ``python -m benchmarks.reproduce_sdldp`` does the experiments of the
SDLDP paper again (its package is `sdldp/`), with pictures and a table of what its claims become.
``python -m benchmarks.models`` puts every private model beside its namesake without privacy and beside other packages
(`peers.py`, each in an environment of its own), on the data of `tasks.py`.

Mechanisms come from the registry (`dpestim.base.all_estimators`): a newcomer is timed with no line here. A baseline for
it is one entry in ``frequencies.PEERS``.

Files: `_harness.py` (repeats, limits, header, table), `frequencies.py` (mechanisms), `one_record.py` (one record on a
client, a part of `frequencies.py`), `threads.py` (two of them beside one), `family.py` (kernels of single mechanisms),
`sketches.py` (count-mean sketches of 2^20 values), `numbers.py` (piecewise mechanisms, expectation maximisation),
`rows.py` (several numbers of a row), `vectors.py` (PrivUnit), `logistic.py` (one model, narrow, wide and sparse),
`shuffle.py` (protocols and bounds), `statistics.py` (means, quantiles, histograms), `fits.py` (each model and
transformer beside its namesake, predictions, boosting by two threads), `plans.py` (plans of surveys), `ledger.py` (an
entry of a budget), `starts.py` (import and first fit), `memory.py` (one fit, and a stream of batches), `words.py`
(random words), `encoding.py` (columns of strings), `keyvalue.py` (sets of pairs), `profile.py` (where the time of `fit`
goes), `distributed.py` (what Dask and Spark add to a bare loop), `attributes.py` (designs of joint tables, models from
them, times of many columns).
"""
