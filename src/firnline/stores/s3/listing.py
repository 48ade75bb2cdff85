"""The first key after another: what a listing is cut by."""

from __future__ import annotations

from typing import Any

import botocore.exceptions


def first_key(client: Any, bucket: str, prefix: str, after: str) -> str | None:
    """Returns the first name under `prefix` that comes after a string, None where there is none.

    Raises LookupError where the store does not say; the caller can list instead.
    """
    try:
        said = client.list_objects_v2(Bucket=bucket, Prefix=prefix, StartAfter=after, MaxKeys=1)
    except (botocore.exceptions.ClientError, botocore.exceptions.BotoCoreError) as error:
        raise LookupError(str(error)) from error
    found = said.get("Contents") or ()
    return str(found[0]["Key"]) if found else None
