"""`SecureSum`: the sum of vectors, in one process and over sockets."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from queue import Queue

import numpy as np
import pandas as pd
import pytest

from dpestim.exceptions import PartiesError
from dpestim.parties import Certificate, Directory, Identity, RelayTerms, SecureSum, SumTerms

VECTORS = np.array([[1, -2, 3], [4, 5, 6], [7, 8, -9], [10, 11, 12], [0, 0, 1]])


@pytest.mark.parametrize("active", [False, True])
@pytest.mark.parametrize("dropped", [(), (2,)])
def test_the_sum_is_that_of_those_who_stay(active, dropped):
    found = SecureSum(5, 3, dropout=0.2, corrupt=0.2, active=active).sum(VECTORS, dropped)
    kept = [k for k in range(5) if k not in dropped]
    assert found.view(np.int64).tolist() == VECTORS[kept].sum(0).tolist()
    assert SecureSum(5, 3, bits=5, dropout=0.2).sum(VECTORS.tolist(), dropped).tolist() == (
        VECTORS[kept].sum(0) % 32).tolist()


def test_more_dropped_than_was_agreed():
    with pytest.raises(PartiesError, match="masked"):
        SecureSum(5, 3, dropout=0.2).sum(VECTORS, [1, 2])
    for bad in ([5], [-1], ["a"]):
        with pytest.raises(ValueError, match="dropped"):
            SecureSum(5, 3).sum(VECTORS, bad)
    with pytest.raises(ValueError, match="5 parties"):
        SecureSum(5, 3).sum(VECTORS[:4])
    with pytest.raises(ValueError, match="size"):
        SecureSum(5, 0)


@pytest.mark.parametrize("wrong", [
    None, 3, iter(VECTORS), pd.DataFrame(np.eye(5, dtype=np.int64)), np.ma.array(VECTORS, mask=VECTORS == 0),
    VECTORS.astype(float), VECTORS.astype(object), VECTORS > 0, VECTORS.astype(">i8"), [[1, 2, 3]] * 4 + [[1, 2]],
    [[2**64, 0, 0]] * 5, np.zeros((5, 3), "M8[s]"), ["abc"] * 5], ids=lambda wrong: type(wrong).__name__)
def test_what_are_no_vectors_of_integers_is_refused(wrong):
    with pytest.raises(ValueError, match=r"vectors? must"):
        SecureSum(5, 3).sum(wrong)


@pytest.mark.parametrize("wrong", [1, None, [[1]], [True], "1"])
def test_what_are_no_places_is_refused(wrong):
    with pytest.raises(ValueError, match="dropped must be"):
        SecureSum(5, 3, dropout=0.4).sum(VECTORS, wrong)


def test_equal_terms_are_signed_alike_whatever_their_types():
    directory = Directory(Identity().public, [Identity().public for _ in range(4)])
    plain = SumTerms(4, 3, dropout=0.25, corrupt=0.0)
    others = [SumTerms(np.int64(4), np.uint8(3), np.int32(64), Fraction(1, 4), 0), SumTerms(4, 3, 64, np.float32(0.25)),
              SumTerms(4, 3, dropout=np.float64(0.25), corrupt=-0.0)]
    assert {terms.context(directory) for terms in others} == {plain.context(directory)}
    assert RelayTerms(np.int64(4)).context(directory) == RelayTerms(4).context(directory)


@pytest.mark.parametrize(("host", "port"), [("127.0.0.1", -1), ("127.0.0.1", 1 << 16), ("127.0.0.1", "80"), (
    "127.0.0.1", None), (None, 80), ("", 80), (5, 80)])
def test_what_are_no_addresses_is_refused(host, port):
    owner, *identities = (Identity() for _ in range(4))
    directory = Directory(owner.public, [identity.public for identity in identities])
    with pytest.raises(ValueError, match=r"(host|port) must be"):
        SecureSum(3, 3).join(VECTORS[0], 0, identities[0], directory, host, port, "00" * 32)
    if port != 80:
        with pytest.raises(ValueError, match="port must be"):
            SecureSum(3, 3).serve(owner, directory, Certificate.make(), port=port)


def over_sockets():
    secure, certificate, ports = SecureSum(3, 3, label="May"), Certificate.make(), Queue()
    owner, *identities = (Identity() for _ in range(4))
    directory = Directory(owner.public, [identity.public for identity in identities])
    with ThreadPoolExecutor(4) as pool:
        served = pool.submit(secure.serve, owner, directory, certificate, ready=ports.put)
        port = ports.get(timeout=10)
        joined = [pool.submit(secure.join, VECTORS[place], place, identity, directory, "127.0.0.1", port,
                              certificate.fingerprint) for place, identity in enumerate(identities)]
        return served.result(20).view(np.int64).tolist(), [one.result(20) for one in joined]


def test_over_sockets_and_within_a_loop_that_runs():
    async def notebook():
        return over_sockets()

    for found, survivors in (over_sockets(), asyncio.run(notebook())):
        assert found == VECTORS[:3].sum(0).tolist()
        assert survivors == [[0, 1, 2]] * 3


def test_within_a_loop_that_runs():
    async def notebook():
        return SecureSum(3, 3).sum(VECTORS[:3]).view(np.int64).tolist()

    assert asyncio.run(notebook()) == VECTORS[:3].sum(0).tolist()
