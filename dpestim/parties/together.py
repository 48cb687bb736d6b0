"""All parties and the server in one process, for tests and examples: every message goes through bytes."""

from collections import deque

from dpestim.exceptions import PartiesError
from dpestim.parties.wire import decode, encode


def run_together(parties, server, through=None):
    """Run a protocol in one process, and return the result of the server.

    Parameters
    ----------
    parties : list of SumParty, or of Relayed
        In the order of their places.
    server : SumServer or Relay
        All messages of parties go to it.
    through : function, default=None
        Takes a frame of bytes and returns the list of frames that arrive: a network with faults.

    Returns
    -------
    result : that of the server

    Raises
    ------
    PartiesError
        Where the server ends without a result. A party that meets an error counts as dropped out.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.parties import Directory, Identity, SumParty, SumServer, SumTerms, run_together
    >>> terms = SumTerms(n_parties=3, size=2)
    >>> owner, *identities = (Identity() for _ in range(4))
    >>> directory = Directory(owner.public, [identity.public for identity in identities])
    >>> parties = [SumParty(terms, directory, place, identity, np.array([place, 10]))
    ...            for place, identity in enumerate(identities)]
    >>> run_together(parties, SumServer(terms, directory, owner))
    array([ 3, 30], dtype=uint64)
    """
    most, out = server.terms.most_bytes, set()
    frames = deque()

    def send(messages, to_server=False):
        for message in messages:
            arrived = [encode(message)] if through is None else through(encode(message))
            frames.extend((frame, to_server) for frame in arrived)

    for party in parties:
        send(party.start(), True)
    while server.phase != "done":
        if not frames:
            send(server.close())
            continue
        try:
            frame, to_server = frames.popleft()
            message = decode(frame, most)
        except PartiesError:
            continue  # (as a connection that breaks: what is damaged never arrives)
        if to_server:
            if server.is_signed(message):  # (what anybody could have sent ends no sum)
                send(server.receive(message))
        elif 0 <= message.receiver < len(parties) and message.receiver not in out:
            try:
                answers = parties[message.receiver].receive(message)
            except PartiesError:
                out.add(message.receiver)
                continue
            send(answers, True)
    return server.result
