"""Pipelines: checks for steps that leak, pipelines that refuse to leak, one budget for all steps.

    check_pipeline    which step is private, learns nothing, comes afterwards, or leaks; before or after `fit`
    share_budget      one epsilon and one delta for all private steps
    PrivatePipeline   a `sklearn.pipeline.Pipeline` that refuses to fit where a step would leak

One walk, which looks at parameters only; `dpestim.inspection.privacy_card` and `dpestim.model_selection` take it too.

    known     what scikit-learn's estimators learn from, and what to use instead
    walk      the walk: follows the data through nested steps
    report    what it found, and what one fit promises
    budget    shares of one budget, exactly
    private   `PrivatePipeline`, and what strict mode wants of steps
"""

from typing import TYPE_CHECKING

from dpestim import lazy

if TYPE_CHECKING:  # (what editors read: they do not run `lazy`)
    from dpestim.pipeline.budget import share_budget
    from dpestim.pipeline.private import PrivatePipeline
    from dpestim.pipeline.report import PipelineReport, check_pipeline

__getattr__, __dir__ = lazy.attach(__name__, {
    "budget": "share_budget",
    "private": "PrivatePipeline",
    "report": "PipelineReport check_pipeline",
})

__all__ = ["PipelineReport", "PrivatePipeline", "check_pipeline", "share_budget"]
