"""Requests to one S3, with the connections of botocore but without its way from a call to a request, which takes longer
than many a server takes for the answer.
"""

from __future__ import annotations

from datetime import UTC, datetime
from hashlib import sha256
from typing import Any
from urllib.parse import urlsplit

from botocore.awsrequest import AWSPreparedRequest
from botocore.exceptions import ClientError
from botocore.parsers import create_parser

from firnline.stores.s3.requests import WireAnswer, WireRequest, escaped, fields_of
from firnline.stores.s3.signing import UNSIGNED, signed

_FAILED = 500


class S3Wire:
    """One S3, with the connections of a boto3 client; without credentials nothing is signed. Raises botocore's errors,
    as they come of a call.
    """

    def __init__(self, client: Any, credentials: Any) -> None:
        self._client = client
        self._credentials = credentials
        self._addresses: dict[str, str] = {}

    @property
    def signs(self) -> bool:
        return self._credentials is not None

    def send(self, asked: WireRequest) -> WireAnswer:
        """Returns what the store said. Raises ClientError for a refusal."""
        answer = self._client._endpoint.http_session.send(self.request(asked))
        told = WireAnswer(answer.headers, answer.content)
        if not 200 <= answer.status_code < 300:
            raise self.refusal(asked.operation, told, answer.status_code)
        return told

    def read(self, asked: WireRequest, root: str) -> dict[str, str]:
        """Returns the fields of an answer whose outmost element this is. Raises ClientError for any other: a server
        that copies says that all is well before it begins, and what went wrong where its answer belongs.
        """
        told = self.send(asked)
        fields = fields_of(told.body, root)
        if fields is None:
            raise self.refusal(asked.operation, told)
        return fields

    def request(self, asked: WireRequest) -> AWSPreparedRequest:
        """Returns a request as it is sent. Its body is signed too, unless it is written with its md5 and by TLS
        (botocore's own rule): so a server refuses what does not arrive as it was sent.
        """
        url, headers = self._url(asked), dict(asked.headers)
        if self.signs:
            proven = asked.method == "PUT" and "Content-MD5" in headers and url.startswith("https:")
            payload = UNSIGNED if proven else sha256(asked.body).hexdigest()
            secrets, region = self._credentials.get_frozen_credentials(), self._client.meta.region_name
            headers = signed(secrets, region, asked.method, url, headers, payload, datetime.now(UTC))
        headers["User-Agent"] = self._client.meta.config.user_agent
        if asked.method in ("PUT", "POST"):
            headers["Content-Length"] = str(len(asked.body))
        return AWSPreparedRequest(asked.method, url, headers, asked.body or None, False)

    def refusal(self, operation: str, told: WireAnswer, status: int = _FAILED) -> ClientError:
        """Returns the store's refusal. A success that does not say so is one too: nothing of it can be believed."""
        response = {"headers": told.headers, "status_code": status, "body": told.body}
        shape = self._client.meta.service_model.operation_model(operation).output_shape
        return ClientError(create_parser("rest-xml").parse(response, shape), operation)

    def _url(self, asked: WireRequest) -> str:
        address = self._address(asked.bucket)
        if asked.name:
            address = f"{address.rstrip('/')}/{escaped(asked.name)}"
        return f"{address}?{asked.query}" if asked.query else address

    def _address(self, bucket: str) -> str:
        """Returns the URL of a bucket, by botocore's rules: by host or by path, of AWS or of another server."""
        if bucket not in self._addresses:
            asked = {"Bucket": bucket, "Delete": {"Objects": []}}
            found = urlsplit(self._client.generate_presigned_url("delete_objects", asked))
            self._addresses[bucket] = found._replace(query="").geturl()
        return self._addresses[bucket]
