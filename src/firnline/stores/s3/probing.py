"""What a bucket does with deletes, as it tells itself and as one delete shows."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import botocore.exceptions

from firnline.ports.probe import ProbeAnswer, no, unknown, yes
from firnline.stores.failures import HOPELESS, code_of, failure, unreachable
from firnline.stores.keys import Key


def versioned(client: Any, key: Key) -> ProbeAnswer:
    """Tells whether a delete only hides an object here."""
    try:
        status = client.get_bucket_versioning(Bucket=key.authority).get("Status")
    except botocore.exceptions.ClientError as error:
        return _not_told(error, key)
    except botocore.exceptions.BotoCoreError as error:
        raise unreachable(key, str(error)) from error
    if status == "Enabled":
        return yes(f"{key.scheme}://{key.authority} keeps every version of an object")
    return no("versions are suspended: older ones may still take room" if status else "no versions are kept")


def locked(client: Any, key: Key) -> ProbeAnswer:
    """Tells whether objects may refuse to be deleted here."""
    try:
        said = client.get_object_lock_configuration(Bucket=key.authority).get("ObjectLockConfiguration", {})
    except botocore.exceptions.ClientError as error:
        if code_of(error) == "ObjectLockConfigurationNotFoundError":
            return no("there is no object lock")
        return _not_told(error, key)
    except botocore.exceptions.BotoCoreError as error:
        raise unreachable(key, str(error)) from error
    if said.get("ObjectLockEnabled") != "Enabled":
        return no("there is no object lock")
    kept = said.get("Rule", {}).get("DefaultRetention", {})
    term = ", ".join(f"{name.lower()} {value}" for name, value in kept.items()) or "no retention by default"
    return yes(f"object lock is on in {key.scheme}://{key.authority} ({term})")


def _not_told(error: botocore.exceptions.ClientError, key: Key) -> ProbeAnswer:
    told = failure(code_of(error), key, str(error))
    if isinstance(told, HOPELESS):
        raise told from error
    return unknown(f"not told: {code_of(error)}")


def delete_one(client: Any, key: Key) -> dict[str, Any]:
    """Returns what S3 says of one delete; raises what its failure means."""
    try:
        said: dict[str, Any] = client.delete_object(Bucket=key.authority, Key=key.path[1:])
    except botocore.exceptions.ClientError as error:
        raise failure(code_of(error), key, str(error)) from error
    except botocore.exceptions.BotoCoreError as error:
        raise unreachable(key, str(error)) from error
    return said


def take_back(client: Any, key: Key, version: str) -> None:
    """Removes the note of a delete from a bucket that keeps versions, where that is allowed."""
    with suppress(botocore.exceptions.ClientError, botocore.exceptions.BotoCoreError):
        client.delete_object(Bucket=key.authority, Key=key.path[1:], VersionId=version)
