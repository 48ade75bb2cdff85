"""What every S3 server here has in common: keys, settings, buckets."""

from __future__ import annotations

import http.client
from typing import Any

import boto3
from botocore.config import Config

from harness.servers.process import HOST, Server

ACCESS, SECRET, REGION = "firnline", "firnline-secret", "us-east-1"


def s3_settings(url: str, access: str = ACCESS, secret: str = SECRET) -> dict[str, str]:
    """Returns what a client needs, as PyIceberg names it."""
    return {
        "s3.endpoint": url,
        "s3.access-key-id": access,
        "s3.secret-access-key": secret,
        "s3.region": REGION,
        "s3.path-style-access": "true",
    }


def environment(server: Server) -> dict[str, str]:
    """Returns the settings as the variables that every AWS client reads."""
    return {
        "AWS_ENDPOINT_URL": server.settings["s3.endpoint"],
        "AWS_ACCESS_KEY_ID": server.settings["s3.access-key-id"],
        "AWS_SECRET_ACCESS_KEY": server.settings["s3.secret-access-key"],
        "AWS_REGION": server.settings["s3.region"],
        "AWS_DEFAULT_REGION": server.settings["s3.region"],
    }


def client(server: Server, service: str = "s3") -> Any:
    """Returns a boto3 client of the server, for what a test does around the code under test."""
    return boto3.client(
        service,
        endpoint_url=server.settings["s3.endpoint"],
        aws_access_key_id=server.settings["s3.access-key-id"],
        aws_secret_access_key=server.settings["s3.secret-access-key"],
        region_name=server.settings["s3.region"],
        config=Config(s3={"addressing_style": "path"}, retries={"max_attempts": 2}),
    )


def make_bucket(server: Server, name: str, *, versioned: bool = False, locked: bool = False) -> str:
    """Makes an empty bucket; `locked` turns object lock on, which versions it too. Returns its URI."""
    clients = client(server)
    clients.create_bucket(Bucket=name, **({"ObjectLockEnabledForBucket": True} if locked else {}))
    if versioned:
        clients.put_bucket_versioning(Bucket=name, VersioningConfiguration={"Status": "Enabled"})
    return f"s3://{name}"


def answers_http(port: int, path: str = "/") -> bool:
    """Returns whether the port speaks HTTP; any status is an answer."""
    connection = http.client.HTTPConnection(HOST, port, timeout=2)
    try:
        connection.request("GET", path)
        connection.getresponse().read()
        return True
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
