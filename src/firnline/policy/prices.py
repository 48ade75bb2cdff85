"""What a class of storage costs: a price list that the operator can replace, class by class, in firnline.yaml.

prices:
  GLACIER_IR: {storage: 0.004, put: 0.02, retrieval: 0.03, days: 90}
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from firnline.errors import PolicyError
from firnline.model.files import Tally
from firnline.policy.policy import Setting

GIGABYTE = 1 << 30
SMALLEST = 128 << 10
"""Objects below this size stay in the standard class: others bill them as if they were larger."""
STANDARD = "STANDARD"
_AMOUNT = re.compile(r"[0-9]{1,6}(?:\.[0-9]{1,9})?")
_DAYS_OF_MONTH = 30


@dataclass(frozen=True, slots=True)
class Price:
    """Dollars: for a gigabyte and month, for a thousand puts, for a gigabyte that is read; and the days for which an
    object is paid at least.
    """

    storage: float
    put: float = 0.0
    retrieval: float = 0.0
    days: int = 0

    def monthly(self, bytes_there: int) -> float:
        return self.storage * bytes_there / GIGABYTE

    def puts(self, files: int) -> float:
        return self.put * files / 1000

    def at_least(self, bytes_there: int) -> float:
        """Returns what is owed although the objects are removed at once."""
        return self.monthly(bytes_there) * self.days / _DAYS_OF_MONTH


PRICES: Mapping[str, Price] = {
    STANDARD: Price(0.023, 0.005),
    "INTELLIGENT_TIERING": Price(0.023, 0.005),
    "STANDARD_IA": Price(0.0125, 0.01, 0.01, 30),
    "ONEZONE_IA": Price(0.01, 0.01, 0.01, 30),
    "GLACIER_IR": Price(0.004, 0.02, 0.03, 90),
    "GLACIER": Price(0.0036, 0.03, 0.01, 90),
    "DEEP_ARCHIVE": Price(0.00099, 0.05, 0.02, 180),
}
"""Amazon S3's list for us-east-1. Requests and reads within a month come on top of storage."""

PRICE_KEYS = ("storage", "put", "retrieval", "days")


def parse_price(key: str, text: str | list[str], where: str) -> float:
    """Returns an amount. Raises PolicyError with `where` it stands."""
    if not isinstance(text, str) or not _AMOUNT.fullmatch(text):
        raise PolicyError(f"{where}: {text!r:.64} is no amount", hint="such as 0.004, in dollars; days as a number")
    return float(text)


def price_list(said: Mapping[str, Mapping[str, Setting[Any]]]) -> dict[str, Price]:
    """Returns the prices, with what the file says in place of the usual ones."""
    found = dict(PRICES)
    for name, keys in said.items():
        values = {key: int(each.value) if key == "days" else each.value for key, each in keys.items()}
        if name not in found and "storage" not in values:
            raise PolicyError(f"prices of {name} lack `storage`", hint="dollars for a gigabyte and month")
        found[name] = replace(found.get(name, Price(0.0)), **values)
    return found


@dataclass(frozen=True, slots=True)
class Costs:
    """What a hand-over costs, in dollars: a month of what is live before and after, a month of what comes to the tier,
    the puts, and what is owed for what comes although it were removed at once.
    """

    live_before: float
    live_after: float
    tier_more: float
    puts: float
    at_least: float

    def to_json(self) -> dict[str, float]:
        return {
            "live_before": self.live_before,
            "live_after": self.live_after,
            "tier_more": self.tier_more,
            "puts": self.puts,
            "at_least": self.at_least,
        }


def costs_of(
    prices: Mapping[str, Price], storage_class: str | None, before: int, after: int, small: Tally, large: Tally
) -> Costs | None:
    """Returns the costs of handing over small and large objects, with so many live bytes before and after; None for a
    class that no price is known of.
    """
    live, tier = prices[STANDARD], prices.get(storage_class or STANDARD)
    if tier is None:
        return None
    return Costs(
        live.monthly(before),
        live.monthly(after),
        live.monthly(small.bytes) + tier.monthly(large.bytes),
        live.puts(small.files) + tier.puts(large.files),
        tier.at_least(large.bytes),
    )
