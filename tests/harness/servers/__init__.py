"""Throw-away servers on 127.0.0.1 for tests, the demo and development; each is a context manager over a folder."""

from harness.servers.moto import moto
from harness.servers.postgres import postgres
from harness.servers.process import Missing, Server
from harness.servers.proxy import Proxy, Rule, proxy
from harness.servers.redis import redis
from harness.servers.rest import rest
from harness.servers.versitygw import versitygw

__all__ = ["Missing", "Proxy", "Rule", "Server", "moto", "postgres", "proxy", "redis", "rest", "versitygw"]
