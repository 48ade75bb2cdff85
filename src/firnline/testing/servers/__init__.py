"""Throw-away servers on 127.0.0.1 for tests, the demo and development; each is a context manager over a folder."""

from firnline.testing.servers.moto import moto
from firnline.testing.servers.postgres import postgres
from firnline.testing.servers.process import Missing, Server
from firnline.testing.servers.proxy import Proxy, Rule, proxy
from firnline.testing.servers.redis import redis
from firnline.testing.servers.rest import rest
from firnline.testing.servers.versitygw import versitygw

__all__ = ["Missing", "Proxy", "Rule", "Server", "moto", "postgres", "proxy", "redis", "rest", "versitygw"]
