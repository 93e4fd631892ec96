"""Where the public keys of OAUTHBEARER come from: a file, or an address that is asked now and then.

Whoever asks never waits: an address is fetched by a thread of its own, and keys that came once hold
until newer ones do. A token with a key that is not known makes for an early look, not too often.

Source: Kafka's RefreshingHttpsJwks.
"""

import json
import logging
import threading
import time
from http.client import HTTPException
from pathlib import Path
from urllib.parse import unquote, urlsplit
from urllib.request import urlopen

import jwt

from wire.security.oauthbearer import key_set

__all__ = ["JwksAddress", "JwksFile"]

_log = logging.getLogger(__name__)
_BYTES_MAX = 1 << 20
_TIMEOUT_SECONDS = 10.0
_RETRY_SECONDS = 1.0
_EARLY_SECONDS = 10.0  # between two looks for a key that is not known


class JwksFile:
    """Read again whenever it has changed. Raises OSError or ValueError at first."""

    def __init__(self, url: str) -> None:
        self._path = Path(unquote(urlsplit(url).path))
        self._changed_ns = -1
        self._keys = self._read()

    def __call__(self, key_id: str | None) -> jwt.PyJWKSet | None:
        try:
            self._keys = self._read()
        except (OSError, ValueError) as error:
            _log.warning("keys stay as they were file=%s reason=%r", self._path, str(error))
        return self._keys

    def _read(self) -> jwt.PyJWKSet:
        changed_ns = self._path.stat().st_mtime_ns
        if changed_ns != self._changed_ns:
            self._keys = key_set(json.loads(self._path.read_bytes()))
            self._changed_ns = changed_ns
        return self._keys


class JwksAddress:
    def __init__(self, url: str, refresh_seconds: float) -> None:
        self._url = url
        self._refresh_seconds = refresh_seconds
        self._keys: jwt.PyJWKSet | None = None
        self._asked_at = -_EARLY_SECONDS
        self._due_at = time.monotonic()
        self._asking = threading.Lock()
        self._look()

    def __call__(self, key_id: str | None) -> jwt.PyJWKSet | None:
        now = time.monotonic()
        is_early = self._lacks(key_id) and now - self._asked_at >= _EARLY_SECONDS
        if now >= self._due_at or is_early:
            self._look()
        return self._keys

    def _lacks(self, key_id: str | None) -> bool:
        keys = self._keys
        return key_id is not None and (
            keys is None or all(key.key_id != key_id for key in keys.keys)
        )

    def _look(self) -> None:
        if self._asking.acquire(blocking=False):
            self._asked_at = time.monotonic()
            threading.Thread(target=self._fetch, name="jwks", daemon=True).start()

    def _fetch(self) -> None:
        wait = self._refresh_seconds
        try:
            # The scheme was checked where the setting was read.
            with urlopen(self._url, timeout=_TIMEOUT_SECONDS) as answer:  # noqa: S310
                self._keys = key_set(json.loads(answer.read(_BYTES_MAX)))
        except (OSError, HTTPException, ValueError) as error:
            _log.warning("no keys from url=%s reason=%r", self._url, str(error))
            wait = min(_RETRY_SECONDS, wait)
        finally:
            self._due_at = time.monotonic() + wait
            self._asking.release()
