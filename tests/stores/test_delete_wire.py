"""What is written to a store in a bulk delete, and what is read from its answer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from xml.etree import ElementTree

import obstore
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firnline.errors import StoreError
from firnline.patience import Patience
from firnline.ports.delete import Doomed, Fate
from firnline.stores.buckets import open_other
from firnline.stores.delete import ObjectDelete
from firnline.stores.delete_batches import fits_in_bulk, in_bulk
from firnline.stores.keys import _taken_apart, object_key, object_name
from firnline.stores.objects import ObjectStores
from firnline.stores.s3.deletes import BulkAnswer, _parsed, _plain, read_answer, write_request
from firnline.stores.s3.places import open_s3
from firnline.stores.throttle import Lanes
from harness.servers.fixtures import unique
from harness.servers.process import Server
from harness.servers.s3 import make_bucket

from .careless import Careless, careless

QUICK = Patience(attempts=2, base_delay_s=0.001, max_delay_s=0.01)
SPACE = "http://s3.amazonaws.com/doc/2006-03-01/"
names = st.text(min_size=1, max_size=20).filter(fits_in_bulk)
starts = st.sampled_from(["s3://b/", "s3:", "s3://", "s3:/", "file:", "file://", "file:///", "/", "", "memory://m/d/"])


@pytest.fixture
def lax(moto_server: Server) -> Iterator[Careless]:
    with careless(moto_server.url) as server:
        yield server


@given(st.lists(names, min_size=1, max_size=8))
def test_every_name_is_written_so_that_it_reads_the_same(wanted: list[str]) -> None:
    root = ElementTree.fromstring(write_request(wanted))
    assert [each.findtext(f"{{{SPACE}}}Key") for each in root] == list(dict.fromkeys(wanted))


@pytest.mark.parametrize("space", ["", f' xmlns="{SPACE}"'])
def test_an_answer_is_read_with_a_namespace_and_without(space: str) -> None:
    said = read_answer(
        f"<DeleteResult{space}><Deleted><VersionId>7</VersionId><Key>a&amp;b</Key></Deleted><Deleted/>"
        "<Error><Code>SlowDown</Code><Key>c</Key><Message/></Error></DeleteResult>".encode()
    )
    assert said == BulkAnswer(["a&b", None], [{"Code": "SlowDown", "Key": "c", "Message": ""}])


@pytest.mark.parametrize(
    "body", ["", "<DeleteResult><Deleted><Key>a</Key></Del", "<Error><Code>X</Code></Error>", "<a/>"]
)
def test_what_is_no_answer_is_none(body: str) -> None:
    assert read_answer(body.encode()) is None


PIECES = st.lists(
    st.sampled_from(
        ["<Deleted><Key>", "</Key></Deleted>", "<!--", "-->", "a", "é", "\r", "&lt;", "<Error/>", " ", "<Key/>"]
    ),
    max_size=8,
).map("".join)
OPENINGS = ['<?xml version="1.0" encoding="UTF-8"?>\n', '<?xml version="1.0" encoding="latin-1"?>', "", " "]


@given(st.sampled_from(OPENINGS), st.sampled_from(["", f' xmlns="{SPACE}"', ' x="y"']), PIECES)
def test_the_quick_reader_never_tells_what_a_parser_would_not(opening: str, space: str, pieces: str) -> None:
    body = f"{opening}<DeleteResult{space}><Deleted><Key>{pieces}</Key></Deleted></DeleteResult>".encode()
    quick, parsed = _plain(body), _parsed(body)
    assert quick is None or (parsed is not None and list(quick.deleted) == [each or "" for each in parsed.deleted])


def test_the_quick_reader_reads_the_usual_answer() -> None:
    keys = "".join(f"<Deleted><Key>{each}</Key></Deleted>" for each in "abc")
    body = f'<?xml version="1.0" encoding="UTF-8"?>\n<DeleteResult xmlns="{SPACE}">{keys}</DeleteResult>'
    assert _plain(body.encode()) == _parsed(body.encode()) == BulkAnswer(["a", "b", "c"], [])


def test_half_an_answer_makes_nothing_gone(moto_server: Server, lax: Careless) -> None:
    root = make_bucket(moto_server, unique("wire"))
    doomed = [Doomed(f"{root}/lake/{each}") for each in "ab"]
    lax.change = lambda method, path, body, answer: (answer[0], answer[1][:-20]) if method == "POST" else answer
    outcomes = ObjectDelete({**moto_server.settings, "s3.endpoint": lax.url}, patience=QUICK).delete(doomed)
    assert {each.fate for each in outcomes} == {Fate.FAILED}


def test_awkward_names_are_deleted_and_their_neighbours_stay(moto_server: Server) -> None:
    root = make_bucket(moto_server, unique("wire")) + "/lake"
    awkward = ["a&b", "a<b>", 'a"b', "a%20b", "a+b", "é 雪", "]]>", "&amp;", "\u2028"]
    store = ObjectStores(moto_server.settings)
    for name in [*awkward, "a b", "&", "a"]:
        store.put(f"{root}/{name}", b"x")
    outcomes = ObjectDelete(moto_server.settings).delete([Doomed(f"{root}/{name}") for name in awkward])
    assert {each.fate for each in outcomes} == {Fate.DELETED}
    assert {each.key.rpartition("/")[2] for each in store.list(root)} == {"a b", "&", "a"}


def test_obstore_takes_silence_for_success(moto_server: Server, lax: Careless) -> None:
    """Why obstore does not delete in bulk here: the day this fails, it may."""
    bucket = make_bucket(moto_server, unique("wire")).removeprefix("s3://")
    store = open_s3({**moto_server.settings, "s3.endpoint": lax.url}).bucket(bucket, 0)
    said = b"<DeleteResult><Deleted><Key>mentioned</Key></Deleted></DeleteResult>"
    lax.change = lambda method, path, body, answer: (200, said)
    obstore.delete(store, ["mentioned", "not mentioned"])


@contextmanager
def answering(status: int, kind: str, body: bytes) -> Iterator[tuple[str, list[str]]]:
    """Hands out the address of a server that says the same to every request, and the requests that it got."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            self.rfile.read(int(self.headers.get("content-length", 0)))
            asked.append(f"{self.command} {self.path}")
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_DELETE = _answer

        def log_message(self, format: str, *args: object) -> None:
            return

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", asked
        server.shutdown()


def test_obstore_takes_silence_for_success_on_azure_too() -> None:
    """Why nothing is deleted in bulk there: the day this fails, it may be."""
    part = b"Content-Type: application/http\r\nContent-ID: 0\r\n\r\nHTTP/1.1 202 Accepted\r\nx-ms-version: 2\r\n\r\n"
    with answering(202, "multipart/mixed; boundary=b", b"--b\r\n" + part + b"\r\n--b--\r\n") as (url, asked):
        settings = {"adls.account-name": "a", "adls.account-key": "a2V5", "adls.account-host": url}
        obstore.delete(open_other("az", "lake", settings, 0), ["mentioned", "not mentioned"])
    assert len(asked) == 1
    assert "comp=batch" in asked[0]


def test_obstore_has_no_request_for_many_keys_of_google() -> None:
    """Why nothing is deleted in bulk there either."""
    with answering(204, "text/plain", b"") as (url, asked):
        settings = {"gcs.oauth2.token": "t", "gcs.service.host": url}
        obstore.delete(open_other("gs", "lake", settings, 0), ["one", "two"])
    assert sorted(each.partition("?")[0].rpartition("/")[2] for each in asked) == ["one", "two"]


@given(
    st.builds(str.__add__, starts, st.text(st.sampled_from("a:/.s\0\n %é\u2028"), max_size=6)) | st.text(max_size=12)
)
def test_a_key_is_the_same_with_and_without_its_folder_remembered(text: str) -> None:
    assert told(object_key, text) == told(_taken_apart, text)


@given(
    st.lists(
        st.builds(str.__add__, starts, st.text(st.sampled_from("ab:/. %é\u2028"), max_size=6)) | st.just("s3://bucket"),
        min_size=1,
        max_size=6,
    )
)
def test_what_goes_in_bulk_is_the_very_object_that_its_key_names(texts: list[str]) -> None:
    bulks, rest = in_bulk([Doomed(text) for text in texts], Lanes().deletes)
    sent = {number: (bulk.bucket, name) for bulk, members in bulks.items() for number, name in members}
    for number, place in sent.items():
        key = object_key(texts[number])
        assert place == (key.authority, object_name(key))
    assert sorted([*sent, *rest]) == list(range(len(texts)))


def test_a_bucket_is_no_object_and_no_other_bucket_is_asked_for_it() -> None:
    """Its name was once taken for that of an object in a bucket called x."""
    (outcome,) = ObjectDelete({}).delete([Doomed("s3://lake")])
    assert (outcome.fate, "not an object" in outcome.error) == (Fate.FAILED, True)


def told(parse: Any, text: str) -> Any:
    try:
        return parse(text)
    except StoreError as error:
        return type(error), str(error)
