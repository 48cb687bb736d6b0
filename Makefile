# `make demo` and `make test` need Python >= 3.11 and a C compiler, nothing else: they make .venv and build in place.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# byte code is made of what is imported, when it is: for all that is installed it takes longer than installing it
PIP := $(BIN)/python -m pip install --quiet --no-compile
# ... and where it is never made, every process that is started compiles all it imports: seconds each
unexport PYTHONDONTWRITEBYTECODE
KERNELS := $(wildcard dpestim/_core/*.pyx dpestim/_core/*.pxd dpestim/_core/src/*.h)

.PHONY: demo test ci-test lint bench peers docs linkcheck searchcheck planner site wheel release-check prereleases debug-test picture tables clean

# two at a time, the longest first; what each prints is shown at its end
demo: $(VENV)/.built
	@printf '%s\n' "examples/us_military.py --output demo-output" "examples/teenagers.py --output demo-output" \
		"examples/sdldp.py --output demo-output" "examples/yrbss_model.py --output demo-output" \
		"examples/summary.py --output demo-output" examples/whole_pipeline.py examples/mixnet.py examples/ratings.py \
		examples/network.py | xargs -P 2 -I {} sh -c \
		'said=$$($(BIN)/python {} 2>&1); code=$$?; printf "%s\n%s\n" "$(BIN)/python {}" "$$said"; exit $$code'

# one worker for each core; all checks of one setting go to one worker, where they share samples (tests/_units.py)
WORKERS := -n auto --dist loadgroup

# (asserts as they are written: rewriting those of all files takes seconds; what fails runs again, and says more)
tested = $(1) $(WORKERS) --assert=plain || { $(1) -q --last-failed --last-failed-no-failures none; false; }

# all but what is marked `ci`: second and third settings of mechanisms, examples in docs, long studies
test: $(VENV)/.built
	$(call tested,$(BIN)/python -m pytest -m "not ci")

# ... which `.ci/run` adds; no worker imports and collects the files that have no such test (two thirds)
ci-test: $(VENV)/.built
	$(call tested,$(BIN)/python -m pytest -m ci $(shell grep -rlw "mark.ci" tests --include="test_*.py"))

lint: $(VENV)/.built
	$(BIN)/python -m ruff check .
	$(BIN)/zizmor --offline --quiet --persona=pedantic .github/workflows

bench: $(VENV)/.built
	$(BIN)/python -m benchmarks

# other packages in environments of their own, with pinned versions: the tables in README.md and docs/project/peers.md;
# of README's rows with ADULT=FILE only, which is not shipped
peers: $(VENV)/.built
	$(BIN)/python -m benchmarks.peer_tables $(if $(ADULT),--adult $(ADULT))

# fails on any warning; API reference, table and proofs come from the registry, figures from runs
docs: $(VENV)/.docs
	$(BIN)/python -m sphinx -q -W --keep-going -j auto -b html docs docs/_build/html
	@echo "documentation in docs/_build/html/index.html"

# links and anchors of the built site (no page is fetched), and what its search finds
linkcheck:
	$(BIN)/python docs/tools/link_check.py docs/_build/html
searchcheck:
	$(BIN)/python docs/tools/search_check.py docs/_build/html

# the built version beside others, in docs/_build/site
site:
	$(BIN)/python docs/tools/versions.py docs/_build/html docs/_build/site

# ask all laws for the table of the planner's page again: minutes
planner: $(VENV)/.built
	$(BIN)/python docs/tools/planner.py

# one wheel for every CPython from 3.11 on, and the source distribution; what is built of one commit has one time
wheel release-check: export SOURCE_DATE_EPOCH := $(or $(SOURCE_DATE_EPOCH),$(shell git log -1 --format=%ct 2>/dev/null || echo 1700000000))
wheel: $(VENV)/.built
	rm -rf dist
	$(BIN)/python -m build --outdir dist .

# of what `make wheel` built: libraries, limited API, a second build of the same bytes, bill of materials
release-check: $(VENV)/.release
	$(BIN)/python .ci/check_release.py dist

# the suite with what its dependencies will be next; what fails is a warning
prereleases: wheel
	$(BIN)/python .ci/prereleases.py

# What a build can change: loops that check every index, and the portable ones in place of the vector ones (no integers of
# 128 bits, nothing of GNU C: what MSVC compiles, with the same seeded results). So the unit
# tests of kernels and of the estimators that drive them in odd shapes, and every check of every mechanism. Ledger,
# proofs about models, documentation and packaging are Python that no build touches; `make test` has run them. So are
# studies of accuracy (`ci` without `second`), of which shorter tests run the same loops, and what calls no kernel
# (marked `no_kernel`: kernels refuse while it runs): descriptions of surveys, laws compared as integers or formulas,
# NumPy's matrices, proof files and docstrings.
KERNEL_TESTS := tests/common/test_mechanisms.py $(foreach name, kernels.py logistic_kernel.py \
	margins.py rng.py encode.py patterns.py central.py answers.py local.py numbers.py collected_numbers.py relaxed.py \
	more_numbers.py mixed.py duchi.py hm.py staircase.py privunit.py personalized.py client_and_server.py rows.py selection.py \
	sparse_vector.py statistics.py statistics_tables.py statistics_guarantees.py softmax.py \
	linear.py adassp.py preprocessing.py naive_bayes.py boosting.py curves_of_boosting.py base_rate.py one_pass.py \
	statistics_users.py statistics_estimators.py columns_of_models.py shuffle.py postprocessing.py pgr.py \
	histogram_encoding.py ikos.py learning.py shuffled.py sketches.py rappor.py longitudinal.py idue.py metric.py \
	transport.py client_states.py iblt.py adaptive.py keyvalue.py local_bayes.py privatized.py synthesis.py trees.py \
	clusters.py covariance.py scaled_rows.py mapped_rows.py near_ranks.py wire.py graphs.py lists.py nodes.py \
	noisy_graph.py list_patterns.py counter.py threads_of_kernels.py exact_reals.py counted_unsent.py sketches_unsent.py \
	ranges_of_categories.py rows_read_once.py sending.py tiles.py \
	words_in_kernels.py only_openssl.py plain_entries.py entries_in_the_middle.py, $(wildcard tests/unit/*/test_$(name)))

debug-test: $(VENV)/.built
	DPESTIM_DEBUG=1 $(BIN)/python setup.py -q build --build-base build/debug --build-lib build/debug/lib
	cp -r dpestim/datasets/data build/debug/lib/dpestim/datasets/
	for proof in $$(find dpestim -name "*.md"); do cp $$proof build/debug/lib/$$proof; done
	export DPESTIM_EXPECT_DEBUG=1 PYTHONPATH=build/debug/lib; $(call tested,$(BIN)/python -P -m pytest \
		-o cache_dir=build/debug/cache $(KERNEL_TESTS) -m "(not ci or second) and not no_kernel")

# draw the picture of the README again
picture: $(VENV)/.built
	$(BIN)/python docs/tools/readme_picture.py

# write the tables of mechanisms into the pages of the documentation
tables: $(VENV)/.built
	$(BIN)/python docs/tools/mechanism_tables.py
	$(BIN)/python docs/tools/error_curves.py --missing

# the environment: remade when what it depends on changes
$(VENV)/.installed: pyproject.toml
	$(PYTHON) -c "import sys; assert sys.version_info >= (3, 11), 'dpestim needs Python 3.11 or newer (set PYTHON=...)'"
	@echo "making an environment in $(VENV) and compiling: about a minute, once"
	$(PYTHON) -m venv $(VENV)
	$(PIP) "setuptools>=77,<90" "cython>=3.3.1,<3.4"
	touch $@

# all that `dpestim[dev]` needs: unpacked on one core, and while that waits for a disk, kernels are compiled
NEEDS = import tomllib; project = tomllib.load(open("pyproject.toml", "rb"))["project"]; \
	extras = {name: own for name, own in project["optional-dependencies"].items() if name not in ("docs", "dask", "spark", "connect", "beam", "verify", "release")}; \
	print(*(n for some in (project["dependencies"], *extras.values()) for n in some if not n.startswith("dpestim[")))

$(VENV)/.built: $(VENV)/.installed setup.py $(KERNELS)
	$(PIP) $$($(BIN)/python -c '$(NEEDS)') & needs=$$!; \
	$(PIP) --no-build-isolation --no-deps --editable .; built=$$?; wait $$needs && exit $$built
	touch $@

$(VENV)/.release: $(VENV)/.built
	$(PIP) "dpestim[release]"
	touch $@

$(VENV)/.docs: $(VENV)/.built
	$(PIP) "dpestim[docs]"  # (by name: what is installed is kept, and its kernels are not compiled again)
	touch $@

clean:
	rm -rf build dist demo-output .peers docs/_build docs/generated $(VENV) dpestim.egg-info dpestim/_core/*.so
