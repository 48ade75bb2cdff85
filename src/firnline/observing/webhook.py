"""News as JSON to an address of the operator's."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable
from urllib.parse import urlsplit

from firnline.patience import Patience
from firnline.ports.observing.news import News
from firnline.version import VERSION

TIMEOUT_S = 5.0
_PATIENCE = Patience(attempts=4, base_delay_s=0.5, max_delay_s=5.0, budget_s=20.0)
_TOO_MANY, _BROKEN, _REFUSED = 429, 500, 300


class Webhook:
    """Posts each piece of news. To be given to an Outlet. The address may hold a secret, so nothing ever says more of
    it than its host.
    """

    def __init__(self, address: str, patience: Patience = _PATIENCE, timeout_s: float = TIMEOUT_S) -> None:
        self._address, self._patience, self._timeout_s = address, patience, timeout_s
        self._troubled = False

    @property
    def place(self) -> str:
        return str(urlsplit(self._address).hostname)

    def deliver(self, news: News, dropped: int) -> None:
        """Posts, and asks again where that can help. What was refused is logged once, until it works again."""
        body = json.dumps({"event": "run", **news.to_json(), "dropped": dropped}).encode()
        answer = self._asked(lambda: self._post(body))
        self._log(answer)

    def _asked(self, post: Callable[[], str | None]) -> str | None:
        """Returns why the news did not get through; None if they did."""
        answer = post()
        for pause in self._patience.pauses():
            if answer is None or answer.startswith("refused"):
                return answer
            time.sleep(pause)
            answer = post()
        return answer

    def _post(self, body: bytes) -> str | None:
        """Returns why this try failed. Text of a library is left out: it would repeat the address."""
        import requests

        headers = {"Content-Type": "application/json", "User-Agent": f"firnline/{VERSION}"}
        try:
            with requests.post(
                self._address, body, headers=headers, timeout=self._timeout_s, allow_redirects=False, stream=True
            ) as answer:
                code = answer.status_code
        except requests.RequestException as problem:
            return type(problem).__name__
        if code == _TOO_MANY or code >= _BROKEN:
            return f"status {code}"
        return None if code < _REFUSED else f"refused with status {code}"

    def _log(self, problem: str | None) -> None:
        if problem is not None and not self._troubled:
            logging.getLogger("firnline").warning("the webhook at %s does not take news: %s", self.place, problem)
        self._troubled = problem is not None
