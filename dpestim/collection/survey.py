"""`Survey`: what clients and a server must agree on, as a file that a person can read."""

import datetime
import re
from fractions import Fraction
from functools import cached_property
from pathlib import Path

from dpestim.collection import messages
from dpestim.collection.canonical import canonical, first_difference, id_of, parsed
from dpestim.collection.description import described, inner, made
from dpestim.collection.file import FAKES, FORMAT, PLAIN, VERSION, as_file, body_of, columns_of
from dpestim.collection.layout import Layout
from dpestim.local.estimates.distribution import DistributionEstimator
from dpestim.local.estimates.mean import MeanEstimator
from dpestim.local.numbers.sw import SWTransformer
from dpestim.local.numbers.transformer import NumberClient
from dpestim.local.server import Server
from dpestim.tables import Table

#: What is read of a file before anything is worked out.
_PARTS = ("id", "name", "valid_from", "valid_until", "client", "columns")


class Survey(Table):
    """What clients and a server of one collection must agree on: mechanism, domain, epsilon, bits of a report.

    A survey is a file of JSON that a person can read and a program in another language can follow
    (``docs/survey_format.md``). Nothing in it can run code. `load` works everything out again from the class and the
    parameters of the client, exactly, and refuses a file that says anything else: a file that was tampered with lowers
    nobody's protection unnoticed. Two surveys are equal where their `id` is.

    Parameters
    ----------
    client : estimator of `dpestim.local`
        Its domain must be declared. A frequency estimator, a transformer of numbers, a `MeanEstimator` or
        `DistributionEstimator` of either, a key-value estimator, `LDPNaiveBayes` or a `MixedEstimator`. Of what learns
        in rounds (`LDPSGDClassifier`, `LDPSGDRegressor` after `next_round`; `PrivKVMEstimator`) a survey is about the
        round that is open. One declaration for any number of columns is taken for one column. Ledger, seed and threads
        are left out: they are those of the machine that runs a client or a server.
    name : str
        What the collection is called.
    valid_from, valid_until : datetime.date, str or None, default=None
        The first and the last day on which reports count, such as "2026-11-26".
    questions : str, list, dict or None, default=None
        What a person is asked, for each column: a string for a single column, a list in the order of the columns, or a
        dict by their names.
    language : {"en", "de"} or None, default=None
        The language of the people who are asked. The text of the file is in it, with chances in whole numbers out of
        100. None: English without these, in a file that earlier versions of dpestim can read.

    Attributes
    ----------
    id : str
        32 hexadecimal digits, a hash of all that the survey says. Every message carries it.
    name, valid_from, valid_until, language : str, datetime.date or None
    privacy_ : PrivacyGuarantee
        What one report of a person promises.
    report_bits, report_bytes : int
        Of the payload of a report.
    keeps_answers : bool
        Whether clients keep answers between reports, in the state that `client_state` of the client returns.

    Raises
    ------
    ValueError
        Where the domain is not declared, a parameter cannot be written down, or a class is unknown, and for these
        estimators: `PersonalizedEstimator`, which has a law for each group (make a survey of each of its clients);
        `PrivatizedColumns`, which keeps reports beside labels and counts nothing (take a `MixedEstimator`).

    Examples
    --------
    >>> from dpestim.collection import Survey
    >>> from dpestim.local import GRRFrequencyEstimator
    >>> survey = Survey(GRRFrequencyEstimator(1.0, categories={"drink": ["tea", "coffee", "water"]}), name="drinks",
    ...                 questions="What do you drink?")
    >>> again = Survey.from_json(survey.to_json())  # (on another machine)
    >>> again == survey, again.report_bits
    (True, 2)
    >>> message = again.encode(again.client(random_state=0).privatize([["tea"]]))
    >>> message.shape, survey.server().aggregate(survey.decode(message)).n_users_
    ((1, 26), 1)
    """

    _n_labels = 1
    _plotted = ("epsilon", None, None)

    def __init__(self, client, *, name, valid_from=None, valid_until=None, questions=None,
                 language=None):
        self._take(body_of(described(client), name=name, valid_from=_day_text(valid_from, "valid_from"),
                           valid_until=_day_text(valid_until, "valid_until"), questions=questions,
                           language=language))
        if not self.layout.columns.same_law(columns_of(client)):
            raise ValueError("client must have the law that its parameters say, and a domain that JSON can hold: take "
                             "a client of its own, not one that is a part of a MixedEstimator")

    def _take(self, body):
        """Keep a checked body, and what follows from it."""
        self._body = body
        self.id = id_of(body)
        self.name, self.language = body["name"], body.get("language")
        self.valid_from, self.valid_until = (_day(body[key]) for key in ("valid_from", "valid_until"))
        self.layout = Layout(columns_of(made(body["client"])))

    # ---------------------------------------------------------------- the file

    def to_json(self):
        """Return the survey as JSON, in an order for readers."""
        return as_file(self._body, self.id)

    def save(self, path):
        """Write the survey to a file of JSON.

        Parameters
        ----------
        path : str or path
        """
        Path(path).write_text(self.to_json(), encoding="utf-8", newline="\n")

    @classmethod
    def from_json(cls, text):
        """Return the survey that JSON text says, or raise ValueError: where anything does not follow from the client.

        Parameters
        ----------
        text : str or bytes

        Returns
        -------
        Survey
        """
        said = parsed(text)
        _check_format(said)
        columns = said.get("columns")
        if not {*_PARTS} <= {*said} or not isinstance(columns, list) or not all(
                isinstance(column, dict) and "question" in column for column in columns):
            raise ValueError("text must have all parts of a survey: id, format, version, name, valid_from, "
                             "valid_until, client, columns, sampled, report, guarantee")
        body = body_of(said["client"], name=said["name"], valid_from=said["valid_from"],
                       valid_until=said["valid_until"], questions=[column["question"] for column in columns],
                       language=said.get("language"))
        wrong = first_difference(body, {key: part for key, part in said.items() if key != "id"})
        if wrong is not None:
            raise ValueError(f"{wrong} does not follow from the client that this survey names: the survey was changed, "
                             "or written by another version of dpestim. Ask for the survey again")
        if said["id"] != id_of(body):
            raise ValueError("id is not that of this survey: the survey was changed. Ask for the survey again")
        survey = object.__new__(cls)
        survey._take(body)
        return survey

    @classmethod
    def load(cls, path):
        """Return the survey of a file that `save` has written, or raise ValueError as `from_json` does.

        Parameters
        ----------
        path : str or path

        Returns
        -------
        Survey
        """
        return cls.from_json(Path(path).read_bytes())

    @cached_property
    def canonical_json(self):
        """The canonical form, bytes: what files of reports carry."""
        return canonical({"id": self.id, **self._body})

    # ---------------------------------------------------------------- both sides

    def client(self, ledger=None, random_state=None, n_jobs=None):
        """Return a new client, whose `privatize` randomises rows.

        Parameters
        ----------
        ledger : dpestim.accounting.Ledger, default=None
            The ledger that is charged for each release. None: the ledger of the enclosing ``with ledger:`` block, if
            any.
        random_state : int, Generator or None, default=None
            None draws from the system's secure source. Anything else is reproducible, and must not be published.
        n_jobs : int, default=None
            Threads.

        Returns
        -------
        estimator
        """
        return inner(made(self._body["client"])).set_params(ledger=ledger, random_state=random_state, n_jobs=n_jobs)

    def server(self):
        """Return a new estimator, whose `aggregate` counts reports; for a transformer of numbers one of means.

        For `SWTransformer`, whose reports tell of a distribution, a `DistributionEstimator`.
        """
        given = made(self._body["client"])
        if isinstance(given, SWTransformer):
            return DistributionEstimator(given)
        return MeanEstimator(given) if isinstance(given, NumberClient) and not isinstance(given, Server) else given

    @property
    def privacy_(self):
        """What one report of a person promises."""
        return made(self._body["client"]).privacy_

    @property
    def keeps_answers(self):
        """Whether clients keep answers between reports."""
        return self._body["report"]["states"]

    @property
    def report_bits(self):
        """Bits of the payload of a report."""
        return self.layout.bits

    @property
    def report_bytes(self):
        """Bytes of the payload of a report."""
        return self.layout.bytes

    # ---------------------------------------------------------------- reports as messages

    def encode(self, reports, nonces=False):
        """Return reports as messages of their own, each with the id of this survey and a checksum.

        Parameters
        ----------
        reports : ndarray of shape (n_rows, width)
            As `privatize` of a client returns them.
        nonces : bool or ndarray of uint8 of shape (n_rows, 8), default=False
            Whether each message gets a random number, by which a collector knows a message that comes twice.

        Returns
        -------
        ndarray of uint8 of shape (n_rows, size)
            A row is a message: ``bytes(row)``.
        """
        payloads = self.layout.pack(self._checked(reports))
        if nonces is True:
            nonces = messages.fresh_nonces(len(payloads))
        elif nonces is False or nonces is None:
            nonces = None
        elif getattr(nonces, "shape", None) != (len(payloads), messages.NONCE_BYTES) or nonces.dtype != "uint8":
            raise ValueError("nonces must be True, False, or an array of uint8 with 8 numbers for each report")
        return messages.sealed(payloads, self.id, nonces)

    def decode(self, given):
        """Return the reports of messages, as `aggregate` takes them, or raise ValueError.

        Parameters
        ----------
        given : bytes, list of bytes, or ndarray of uint8 with a message in each row
        """
        found = messages.opened(given, self.id, self.report_bytes)
        messages.refuse(found.reasons)
        return self.unpack(found.payloads)

    def encode_text(self, reports, nonces=False):
        """Return reports as messages in base64url, a list of str: for URLs and logs."""
        return messages.to_text(self.encode(reports, nonces))

    def decode_text(self, texts):
        """Return the reports of texts as `encode_text` returns them, or of one text."""
        return self.decode(messages.from_text(texts))

    def pack(self, reports):
        """Return the payloads of reports, an ndarray of uint8 of shape (n_rows, `report_bytes`)."""
        return self.layout.pack(self._checked(reports))

    def unpack(self, payloads):
        """Return the reports of payloads, or raise ValueError for what no client of this survey sends."""
        if not len(payloads):
            raise ValueError("there must be at least one report")
        reports = self.layout.unpack(payloads)
        self.layout.columns.check_reports(reports)
        return reports

    # ---------------------------------------------------------------- reports as tables (the extra `arrow`)

    def to_arrow(self, reports, *, batch=None, received_on=None, nonces=False):
        """Return reports as an Arrow table, with this survey and a random name of the table in its metadata.

        `aggregate` of the server and `Collector.add` take such a table.

        Parameters
        ----------
        reports : ndarray of shape (n_rows, width)
        batch : str, default=None
            A column `batch`, with this text in every row.
        received_on : date or str, default=None
            A column `received_on`: a date, never a time to the second, because times tell who was asked with whom.
        nonces : bool, default=False
            Whether each report gets a random `nonce`, by which a collector knows a report that comes twice.

        Returns
        -------
        pyarrow.Table
        """
        from dpestim.collection import batches

        return batches.to_arrow(self, reports, batch, received_on, nonces)

    @staticmethod
    def of_arrow(table):
        """Return the survey in the metadata of an Arrow table, record batch or schema, or raise ValueError."""
        from dpestim.collection import batches

        return batches.survey_in(table)

    def write(self, path, reports, **columns):
        """Write reports into a Parquet file, which is there whole or not at all.

        Parameters
        ----------
        path : path-like
        reports : ndarray of shape (n_rows, width)
        **columns
            As `to_arrow` takes them.
        """
        from dpestim.collection import batches

        batches.write(path, [self.to_arrow(reports, **columns)])

    def _checked(self, reports):
        return self.layout.columns.check_reports(reports)

    # ---------------------------------------------------------------- an object

    def __eq__(self, other):
        return self.id == other.id if isinstance(other, Survey) else NotImplemented

    def __hash__(self):
        return hash(self.id)

    def __reduce__(self):
        return Survey.from_json, (self.to_json(),)

    def __repr__(self):
        return f"Survey(name={self.name!r}, client={self._body['client']['class']}, id={self.id!r})"

    @property
    def privacy(self):
        """What the survey promises, as other results say it."""
        return self.privacy_

    def _about(self):
        return f"What users are asked in the survey {self.name!r}, and how the answers are randomised."

    def _head(self):
        return ("column", "domain", "law", "epsilon", "bits")

    def _rows(self):
        for column, fields in zip(self._body["columns"], self.layout.fields):
            bits = sum(field.bits * field.count for field in fields)
            epsilon = column["law"]["epsilon"]
            yield (str(column["name"]), column["domain"]["kind"], column["law"]["name"],
                   None if epsilon is None else float(Fraction(epsilon)), bits)

    def _remarks(self):
        yield f"Survey {self.name!r}, id {self.id}."
        yield from map(_asked, self._body["columns"])
        yield self._body["guarantee"]["text"]


def _asked(column):
    """Return the question of a column, and which answers it takes."""
    domain, question = column["domain"], column["question"]
    values = [_plain(value) for value in domain.get("values", ())]
    if domain["kind"] == "categories":
        answers = ", ".join(values[:12]) + (f", ... ({len(values)} values)" if len(values) > 12 else "")
    elif domain["kind"] == "numbers":
        answers = f"{domain['low']} to {domain['high']}" + (f" {domain['unit']}" if domain["unit"] else "")
    else:
        answers = domain["kind"]
    if domain["kind"] == "numbers" and domain["missing"]:
        answers += ", or missing"
    return f"{column['name']}: {question or 'no question is given.'} Answers: {answers}."


def _plain(value):
    """Return a value of a survey as a person reads it."""
    return "missing" if value is None else str(*value.values()) if isinstance(value, dict) else str(value)


def _check_format(said):
    """Raise ValueError for another format, and for a newer version of this one."""
    if not isinstance(said, dict) or said.get("format") != FORMAT:
        raise ValueError(f"text must be a survey: an object with format {FORMAT!r}")
    version = said.get("version")
    if version not in (VERSION, FAKES, PLAIN):
        parts = re.fullmatch(r"([0-9]{1,5})\.([0-9]{1,5})", version, re.ASCII) if isinstance(version, str) else None
        if parts is not None and tuple(map(int, parts.groups())) > tuple(map(int, VERSION.split("."))):
            raise ValueError(f"version {version} of the format is newer than {VERSION}, the one that this version of "
                             "dpestim reads: update dpestim")
        raise ValueError(f"version must be {PLAIN!r}, {FAKES!r} for a survey with fakes, or {VERSION!r} for one that "
                         "names its language")


def _day_text(day, name):
    if isinstance(day, datetime.datetime):
        day = None if day != day else day.date()
    if day is None or isinstance(day, str):
        return day
    if not isinstance(day, datetime.date):
        raise ValueError(f"{name} must be None or a date, such as '2026-11-26'")
    return day.isoformat()


def _day(text):
    return None if text is None else datetime.date.fromisoformat(text)

