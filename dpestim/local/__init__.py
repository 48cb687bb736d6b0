"""Local differential privacy: every user's device adds noise, and nobody else needs to be trusted.

All data take one path::

    X --Column.read--> rows --codes--> law.privatize --reports--> law.count --counts--> estimates
       (encoder: categories, bounds)    (words from dpestim.rng)      (merge adds)      (release)

    law.py       `Randomizer`: one column's exact law and its guarantee, as data; its arguments are its identity
    reports.py   shapes that reports come in: a code, packed bits, fields
    columns.py   `Column` (what turns values into codes, and a law), `Columns` (those of a row), the one walk
    sampling.py  `SampledColumns`: those of a row of which each user reports k, and its walk
    coded.py     features of a row as small numbers: places of categories, bins of numbers
    feature_client.py  `FeatureClient`: clients whose columns are categories or numbers, by place or by name
    views.py     `View`: a public function of features, with a law of its own; `ViewColumns`, of which users report some
    client.py    `Client`: a domain, `privatize`, a ledger, a seed, `privacy_`
    server.py    `Server`: integer counts, `aggregate`, `merge`, `partial_fit`, `n_users_`
    grouping.py  which users of a fit answer in which round, where groups answer one after another
    patterns.py  eight independent bits from 16 random ones, for laws whose reports are bits
    channel.py   laws as channels between bins and counts, for servers of numbers
    costs.py     what a law costs before anybody has reported: error, bits, time, memory
    guessing.py  the best guess of a value from its report, and how often it is right, for `dpestim.audit`

and a package for each kind of data, which the files above know nothing about::

    categories/  laws over a list of values; `FrequencyEstimator` is client and server in one
    keyvalue/    laws over sets of (key, value) pairs: a row is a set, and rows are sliced as those of arrays
    numbers/     laws on a grid between bounds; `NumericTransformer` is a client
    domains/     domains too large to list, and ordered ones: heavy hitters, ranges and quantiles
    estimates/   servers for any client: means and distributions; and users of different settings, around any server
    attributes/  many columns: their frequencies and joint tables, by one report a user
    learning/    models from reports: noisy gradients, naive Bayes; privatised columns before plain models

A mechanism is a law and an estimator in one file of its package, with the proof of that name beside it and its
kernel, if it needs one, in `dpestim/_core`. Packages do not import each other, but for `estimates`, `domains` and
`attributes`, which stand above `categories` and `numbers` (`domains` above
`estimates`, too), and `learning`, above these.

A law gets its words from a `dpestim.rng.Words`, by stage: ``words.dense(Stage.RESPONSE, k)`` for the k words of every
record, ``words.sparse(Stage.RARE, d, places)`` for words that few records need (ties in unary encoding). Every place
has a counter of its own, so rare words are reproducible and cannot run out; this is why `privatize` takes `words` as an
object and not as one array.

`__all__` is the registry: a class listed here is exported, checked, benchmarked and documented with no further line.
"""

from typing import TYPE_CHECKING

from dpestim import lazy

if TYPE_CHECKING:  # (what editors read: they do not run `lazy`)
    from dpestim.local.attributes.marginals import MarginalEstimator
    from dpestim.local.attributes.multi import MultiAttributeFrequencyEstimator
    from dpestim.local.categories.adaptive import AdaptiveFrequencyEstimator
    from dpestim.local.categories.binary import BinaryFrequencyEstimator
    from dpestim.local.categories.cms import CMSFrequencyEstimator, HCMSFrequencyEstimator
    from dpestim.local.categories.dbitflip import DBitFlipFrequencyEstimator
    from dpestim.local.categories.grr import GRRFrequencyEstimator
    from dpestim.local.categories.histogram_encoding import SHEFrequencyEstimator, THEFrequencyEstimator
    from dpestim.local.categories.hr import HRFrequencyEstimator
    from dpestim.local.categories.idue import IDUEFrequencyEstimator
    from dpestim.local.categories.lgrr import LGRRFrequencyEstimator
    from dpestim.local.categories.loloha import LOLOHAFrequencyEstimator
    from dpestim.local.categories.lunary import LOSUEFrequencyEstimator, LOUEFrequencyEstimator
    from dpestim.local.categories.metric import MetricFrequencyEstimator
    from dpestim.local.categories.olh import BLHFrequencyEstimator, OLHFrequencyEstimator
    from dpestim.local.categories.pgr import PGRFrequencyEstimator
    from dpestim.local.categories.rappor import RAPPORFrequencyEstimator
    from dpestim.local.categories.sdgrr import SDGRRFrequencyEstimator
    from dpestim.local.categories.ss import SSFrequencyEstimator
    from dpestim.local.categories.unary import OUEFrequencyEstimator, SUEFrequencyEstimator
    from dpestim.local.categories.urap import URAPFrequencyEstimator
    from dpestim.local.categories.urr import URRFrequencyEstimator
    from dpestim.local.domains.grids import Refinement
    from dpestim.local.domains.hitters import HeavyHitterEstimator, HeavyHitters
    from dpestim.local.domains.itemsets import ItemsetEstimator, ItemSets
    from dpestim.local.domains.ranges import RangeEstimator
    from dpestim.local.domains.rectangles import RectangleEstimator
    from dpestim.local.estimates.distribution import DistributionEstimator
    from dpestim.local.estimates.mean import MeanEstimator
    from dpestim.local.estimates.mixed import MixedEstimator
    from dpestim.local.estimates.personalized import PersonalizedEstimator
    from dpestim.local.estimates.planning import SurveyPlan, plan, plan_mean
    from dpestim.local.keyvalue.pckv import PCKVEstimator
    from dpestim.local.keyvalue.privkv import PrivKVEstimator
    from dpestim.local.keyvalue.privkvm import PrivKVMEstimator
    from dpestim.local.learning.gradients import Round
    from dpestim.local.learning.naive_bayes import LDPNaiveBayes
    from dpestim.local.learning.privatized import PrivatizedColumns
    from dpestim.local.learning.sgd import LDPSGDClassifier, LDPSGDRegressor
    from dpestim.local.numbers.duchi import DuchiTransformer
    from dpestim.local.numbers.hm import HMTransformer
    from dpestim.local.numbers.laplace import LaplaceTransformer
    from dpestim.local.numbers.pm import PMTransformer
    from dpestim.local.numbers.privunit import PrivUnitTransformer
    from dpestim.local.numbers.sdpm import SDPMTransformer
    from dpestim.local.numbers.staircase import StaircaseTransformer
    from dpestim.local.numbers.sw import SWTransformer

__getattr__, __dir__ = lazy.attach(__name__, {
    "attributes.marginals": "MarginalEstimator",
    "attributes.multi": "MultiAttributeFrequencyEstimator",
    "categories.adaptive": "AdaptiveFrequencyEstimator",
    "categories.binary": "BinaryFrequencyEstimator",
    "categories.cms": "CMSFrequencyEstimator HCMSFrequencyEstimator",
    "categories.dbitflip": "DBitFlipFrequencyEstimator",
    "categories.grr": "GRRFrequencyEstimator",
    "categories.histogram_encoding": "SHEFrequencyEstimator THEFrequencyEstimator",
    "categories.hr": "HRFrequencyEstimator",
    "categories.idue": "IDUEFrequencyEstimator",
    "categories.lgrr": "LGRRFrequencyEstimator",
    "categories.loloha": "LOLOHAFrequencyEstimator",
    "categories.lunary": "LOSUEFrequencyEstimator LOUEFrequencyEstimator",
    "categories.metric": "MetricFrequencyEstimator",
    "categories.olh": "BLHFrequencyEstimator OLHFrequencyEstimator",
    "categories.pgr": "PGRFrequencyEstimator",
    "categories.rappor": "RAPPORFrequencyEstimator",
    "categories.sdgrr": "SDGRRFrequencyEstimator",
    "categories.ss": "SSFrequencyEstimator",
    "categories.unary": "OUEFrequencyEstimator SUEFrequencyEstimator",
    "categories.urap": "URAPFrequencyEstimator",
    "categories.urr": "URRFrequencyEstimator",
    "domains.grids": "Refinement",
    "domains.hitters": "HeavyHitterEstimator HeavyHitters",
    "domains.itemsets": "ItemsetEstimator ItemSets",
    "domains.ranges": "RangeEstimator",
    "domains.rectangles": "RectangleEstimator",
    "estimates.distribution": "DistributionEstimator",
    "estimates.mean": "MeanEstimator",
    "estimates.mixed": "MixedEstimator",
    "estimates.personalized": "PersonalizedEstimator",
    "estimates.planning": "SurveyPlan plan plan_mean",
    "keyvalue.pckv": "PCKVEstimator",
    "keyvalue.privkv": "PrivKVEstimator",
    "keyvalue.privkvm": "PrivKVMEstimator",
    "learning.gradients": "Round",
    "learning.naive_bayes": "LDPNaiveBayes",
    "learning.privatized": "PrivatizedColumns",
    "learning.sgd": "LDPSGDClassifier LDPSGDRegressor",
    "numbers.duchi": "DuchiTransformer",
    "numbers.hm": "HMTransformer",
    "numbers.laplace": "LaplaceTransformer",
    "numbers.pm": "PMTransformer",
    "numbers.privunit": "PrivUnitTransformer",
    "numbers.sdpm": "SDPMTransformer",
    "numbers.staircase": "StaircaseTransformer",
    "numbers.sw": "SWTransformer",
})

__all__ = [
    "AdaptiveFrequencyEstimator",
    "BLHFrequencyEstimator",
    "BinaryFrequencyEstimator",
    "CMSFrequencyEstimator",
    "DBitFlipFrequencyEstimator",
    "DistributionEstimator",
    "DuchiTransformer",
    "GRRFrequencyEstimator",
    "HCMSFrequencyEstimator",
    "HMTransformer",
    "HRFrequencyEstimator",
    "HeavyHitterEstimator",
    "HeavyHitters",
    "IDUEFrequencyEstimator",
    "ItemSets",
    "ItemsetEstimator",
    "LDPNaiveBayes",
    "LDPSGDClassifier",
    "LDPSGDRegressor",
    "LGRRFrequencyEstimator",
    "LOLOHAFrequencyEstimator",
    "LOSUEFrequencyEstimator",
    "LOUEFrequencyEstimator",
    "LaplaceTransformer",
    "MarginalEstimator",
    "MeanEstimator",
    "MetricFrequencyEstimator",
    "MixedEstimator",
    "MultiAttributeFrequencyEstimator",
    "OLHFrequencyEstimator",
    "OUEFrequencyEstimator",
    "PCKVEstimator",
    "PGRFrequencyEstimator",
    "PMTransformer",
    "PersonalizedEstimator",
    "PrivKVEstimator",
    "PrivKVMEstimator",
    "PrivUnitTransformer",
    "PrivatizedColumns",
    "RAPPORFrequencyEstimator",
    "RangeEstimator",
    "RectangleEstimator",
    "Refinement",
    "Round",
    "SDGRRFrequencyEstimator",
    "SDPMTransformer",
    "SHEFrequencyEstimator",
    "SSFrequencyEstimator",
    "SUEFrequencyEstimator",
    "SWTransformer",
    "StaircaseTransformer",
    "SurveyPlan",
    "THEFrequencyEstimator",
    "URAPFrequencyEstimator",
    "URRFrequencyEstimator",
    "plan",
    "plan_mean",
]
