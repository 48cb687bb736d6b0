"""Whom one must trust in place of a curator, where several parties make a release."""

from dpestim.records import record


@record
class Parties:
    """How many of the parties that make a release may collude: what a guarantee rests on in place of a curator.

    Parameters
    ----------
    n_parties : int or None
        None: not known yet.
    colluding : int or None
        How many may collude or drop out at most; None: any number of those who do not compute.
    with_server : int or None
        How many of these may collude with whoever adds up; None: all of them.
    name : {"parties", "owners"}
    computing : bool
        Whether three of them compute for all, and all follow the protocol.
    honest : int or None
        How many collude with nobody, at least: in place of `colluding` where `n_parties` is not known.
    follows : bool
        Whether whoever adds up, or all owners, must follow the protocol (honest-but-curious).
    sums : bool
        Whether a secure sum must add up what they send.
    """

    n_parties: int | None
    colluding: int | None
    with_server: int | None = None
    name: str = "parties"
    computing: bool = False
    honest: int | None = None
    follows: bool = False
    sums: bool = False

    @property
    def nobody(self):
        """Who need not be trusted."""
        if self.computing:
            return "no single owner"
        return "no party and no server" if self.name == "parties" else "no owner and no aggregator"

    @property
    def condition(self):
        """What must hold."""
        said = []
        if self.computing:
            said.append("no two of the three computing owners collude")
        if self.colluding is not None:
            said.append(self._at_most(self.colluding, "colludes" if self.computing else "colludes or drops out"))
        if self.honest is not None:
            said.append(f"at least {self.honest} of the {self.name} {_verb(self.honest, 'colludes')} with nobody")
        if self.with_server is not None and self.with_server < self.colluding:
            said.append(f"{_some(self.with_server)} of them {_verb(self.with_server, 'colludes')} with the server")
        if self.sums:
            said.append("a secure sum adds up what they send")
        if self.follows and self.name == "parties":
            said.append("the server follows the protocol")
        if self.computing or (self.follows and self.name == "owners"):
            said.append("all owners follow the protocol")
        return " and ".join(said) if len(said) < 3 else ", ".join(said[:-1]) + f", and {said[-1]}"

    @property
    def sentence(self):
        """Whom one must trust, as the end of a sentence."""
        return f"{self.nobody} must be trusted, as long as {self.condition}"

    def _at_most(self, most, verbs):
        whole = f"the {self.name}" if self.n_parties is None else f"the {self.n_parties} {self.name}"
        return f"{_some(most)} of {whole} {_verb(most, verbs)}"


def _some(most):
    return f"at most {most}" if most else "none"


def _verb(most, verbs):
    return verbs if most < 2 else verbs.replace("colludes", "collude").replace("drops", "drop")
