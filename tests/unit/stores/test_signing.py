"""Signatures of requests are those that botocore makes of the same requests."""

from __future__ import annotations

from datetime import UTC, datetime
from hashlib import sha256
from urllib.parse import quote

import pytest
from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import ReadOnlyCredentials
from hypothesis import given
from hypothesis import strategies as st

from firnline.stores.s3.requests import escaped, fields_of
from firnline.stores.s3.signing import Secrets, host, signed

words = st.text("abcXYZ019-._~", min_size=1, max_size=12)
names = st.text(min_size=1, max_size=12).map(lambda text: text.encode("utf-8", "replace").decode())
values = st.text('ab Z09"*=/%', max_size=12).filter(lambda text: text.strip() == text)
headers = st.dictionaries(st.sampled_from(["If-None-Match", "Content-MD5", "x-amz-copy-source", "X-Amz-Tag"]), values)
queries = st.sampled_from(["", "uploads", "delete", "partNumber=7&uploadId=a%2Bb", "uploadId=x&partNumber=1", "b=&a"])
servers = st.sampled_from(
    ["http://127.0.0.1:9", "https://b.s3.amazonaws.com", "http://s3.local:80", "https://S3.x:444"]
)


@given(
    words, words, st.none() | words, st.sampled_from(["GET", "PUT", "POST", "HEAD"]), servers, names, queries, headers
)
def test_requests_are_signed_as_botocore_signs_them(
    access: str, secret: str, token: str | None, method: str, server: str, name: str, query: str, told: dict[str, str]
) -> None:
    url = f"{server}/{escaped(name)}" + (f"?{query}" if query else "")
    theirs = AWSRequest(method, url, told, b"body")
    S3SigV4Auth(ReadOnlyCredentials(access, secret, token), "s3", "eu-west-3").add_auth(theirs)
    then = datetime.strptime(theirs.headers["X-Amz-Date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    payload = sha256(b"body").hexdigest()
    ours = signed(Secrets(access, secret, token), "eu-west-3", method, url, told, payload, then)
    assert ours["Authorization"] == theirs.headers["Authorization"]
    assert ours.get("X-Amz-Security-Token") == token


@given(names)
def test_names_are_spelled_as_botocore_spells_them(name: str) -> None:
    assert escaped(name) == quote(name, safe="/-._~")


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"<R><ETag>&quot;x&quot;</ETag><Empty/></R>", {"ETag": '"x"', "Empty": ""}),
        (b' \n <?xml version="1.0"?><R xmlns="http://a/"><ETag>x</ETag></R>\n', {"ETag": "x"}),
        (b"<Error><Code>InternalError</Code></Error>", None),
        (b"<R><ETag>x</ETag>", None),
        (b"", None),
    ],
)
def test_only_the_answer_that_was_asked_for_is_read(body: bytes, expected: dict[str, str] | None) -> None:
    assert fields_of(body, "R") == expected


def test_a_host_is_named_without_the_usual_port() -> None:
    assert [host("http://a:80/x"), host("https://a:443"), host("https://a:80"), host("http://[::1]:9/x")] == [
        "a", "a", "a:80", "[::1]:9",
    ]  # fmt: skip
