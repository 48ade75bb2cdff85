"""Bulk deletes on S3 as they go over the wire: address, signature, connection and errors are botocore's own parts.

Its whole way from call to request takes longer than a server takes for a thousand keys, so the parts are called one
by one. obstore is as quick, but it takes a key that the answer does not mention for deleted.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from hashlib import md5
from typing import Any
from urllib.parse import urlsplit

from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.exceptions import ClientError
from botocore.parsers import create_parser

from firnline.stores.bulk_xml import Said, read_answer, write_request

_OPERATION = "DeleteObjects"
_FAILED = 500


class BulkWire:
    """One S3's bulk deletes, with the connections of a boto3 client; without credentials nothing is signed."""

    def __init__(self, client: Any, credentials: Any) -> None:
        self._client = client
        self._credentials = credentials
        self._addresses: dict[str, str] = {}

    def delete(self, bucket: str, names: Sequence[str]) -> Said:
        """Returns what one request said. Raises botocore's errors; names must survive XML."""
        answer = self._client._endpoint.http_session.send(self._request(bucket, write_request(names)).prepare())
        said = read_answer(answer.content) if answer.status_code == 200 else None
        if said is None:
            raise self._failure(answer)
        return said

    def _request(self, bucket: str, body: bytes) -> AWSRequest:
        """Returns a signed request. The checksum is the one that every S3 knows; several refuse newer ones alone."""
        headers = {
            "User-Agent": self._client.meta.config.user_agent,
            "Content-MD5": b64encode(md5(body, usedforsecurity=False).digest()).decode(),
        }
        request = AWSRequest("POST", f"{self._address(bucket)}?delete", headers, body)
        if self._credentials is not None:
            current = self._credentials.get_frozen_credentials()
            S3SigV4Auth(current, "s3", self._client.meta.region_name).add_auth(request)
        return request

    def _address(self, bucket: str) -> str:
        """Returns where botocore's rules put a bucket: by host or by path, of AWS or of another server."""
        if bucket not in self._addresses:
            asked = {"Bucket": bucket, "Delete": {"Objects": []}}
            found = urlsplit(self._client.generate_presigned_url("delete_objects", asked))
            self._addresses[bucket] = found._replace(query="").geturl()
        return self._addresses[bucket]

    def _failure(self, answer: Any) -> ClientError:
        """Returns the store's refusal. A success without its XML is a failure too: nothing of it can be believed."""
        status = _FAILED if answer.status_code == 200 else answer.status_code
        response = {"headers": answer.headers, "status_code": status, "body": answer.content}
        shape = self._client.meta.service_model.operation_model(_OPERATION).output_shape
        return ClientError(create_parser("rest-xml").parse(response, shape), _OPERATION)
