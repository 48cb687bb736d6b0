"""Several parties who trust nobody: sums, models, quantiles and common users. A server learns the result alone.

    terms.py         `SumTerms`: what all agree on: how many may drop out or collude, the graph of neighbours
    keys.py          `Identity`, `Directory`: who signs; keys that two parties agree on
    wire.py          `encode`, `decode`: messages as bytes, of which nothing is pickled
    limits.py        what a message, and what waits, may have at most
    party.py         `SumParty`: messages in, messages out
    server.py        `SumServer`: messages in, messages out
    relay.py         `Relay`, `Relayed`, `RelayTerms`: quantiles and common users over the transport of sums
    session.py       `serve`, `join`: over sockets, with TLS
    together.py      `run_together`: all in one process
    secure_sum.py    `SecureSum`: one sum, in one process or over sockets: begin here
    noise.py         `PolyaShares`, `DiscreteGaussianShares`, `SkellamShares`, `BinomialShares`: noise that nobody knows
    model_of_all.py  `federated`, `take_part`: one model of the rows of all parties
    shares_of_fit.py what a fit keeps where more of them collude
    line.py          a TLS connection that two threads use
    rounds.py        `RoundsClient`, `serve_rounds`: as many sums as a fit needs, over sockets
    quantile.py      `SecureQuantile`, `QuantileOwner`: a quantile, by the exponential mechanism inside three parties
    intersection.py  `PrivateIntersectionSize`: how many users two owners have in common

The proofs, who learns what and what is not protected: the ``.md`` files beside the code.
"""

from typing import TYPE_CHECKING

from dpestim import lazy

if TYPE_CHECKING:  # (what editors read: they do not run `lazy`)
    from dpestim.parties.intersection import PrivateIntersectionSize
    from dpestim.parties.keys import Directory, Identity
    from dpestim.parties.model_of_all import federated, take_part
    from dpestim.parties.noise import BinomialShares, DiscreteGaussianShares, PolyaShares, SkellamShares
    from dpestim.parties.party import SumParty
    from dpestim.parties.quantile import SecureQuantile
    from dpestim.parties.quantile_owner import QuantileOwner
    from dpestim.parties.relay import Relay, Relayed, RelayTerms
    from dpestim.parties.rounds import RoundsClient, serve_rounds
    from dpestim.parties.secure_sum import SecureSum
    from dpestim.parties.server import SumServer
    from dpestim.parties.session import Certificate, join, serve
    from dpestim.parties.terms import SumTerms
    from dpestim.parties.together import run_together
    from dpestim.parties.wire import decode, encode

__getattr__, __dir__ = lazy.attach(__name__, {
    "intersection": "PrivateIntersectionSize",
    "keys": "Directory Identity",
    "model_of_all": "federated take_part",
    "noise": "BinomialShares DiscreteGaussianShares PolyaShares SkellamShares",
    "party": "SumParty",
    "quantile": "SecureQuantile",
    "quantile_owner": "QuantileOwner",
    "relay": "Relay RelayTerms Relayed",
    "rounds": "RoundsClient serve_rounds",
    "secure_sum": "SecureSum",
    "server": "SumServer",
    "session": "Certificate join serve",
    "terms": "SumTerms",
    "together": "run_together",
    "wire": "decode encode",
})

__all__ = ["BinomialShares", "Certificate", "Directory", "DiscreteGaussianShares", "Identity",
           "PolyaShares", "PrivateIntersectionSize", "QuantileOwner", "Relay", "RelayTerms", "Relayed", "RoundsClient",
           "SecureQuantile", "SecureSum", "SkellamShares", "SumParty", "SumServer", "SumTerms", "decode", "encode",
           "federated", "join", "run_together", "serve", "serve_rounds", "take_part"]
