"""JSON Web Tokens of a login service, verified with a file of its public keys (JWKS).

The file is read again when it changes: a key that is gone makes its tokens invalid, open streams
included. A file without a usable key ends all tokens: that is how the only key is withdrawn. A file
that is missing or no JWKS is reported once, and the last keys stay.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from quorate.config.security import SecurityConfig
from quorate.services.tokens import Security, Session, refused
from quorum.errors import ConfigError
from quorum.watched_file import WatchedFile

_log = logging.getLogger(__name__)

KEYS_BYTES_MAX: Final = 1 << 20
LEEWAY_S: Final = 30
"""Difference of clocks that is tolerated."""
NAME_LENGTH_MAX: Final = 1024
_EXTRA: Final = "install it with `pip install 'quorate[jwt]'`"


def jwt_tokens(config: SecurityConfig) -> JwtTokens | None:
    """Return what verifies tokens, as configured; None if no keys are.

    Raises:
        ConfigError: PyJWT is missing, or the file holds no usable key.
    """
    if config.jwt_jwks_file == Path():
        return None
    try:
        import jwt
    except ImportError as error:
        raise ConfigError([f"security.jwt_jwks_file needs PyJWT: {_EXTRA}"]) from error
    return JwtTokens(
        jwt,
        config.jwt_jwks_file,
        issuer=config.jwt_issuer,
        audience=config.jwt_audience,
        claim=config.jwt_principal_claim,
        algorithms=config.jwt_algorithms,
    )


@dataclass(slots=True)
class _Keys:
    """The keys of one reading of the file, by id."""

    by_id: dict[str, tuple[Any, Any]]
    """Each as PyJWT's key, and as it stands in the file."""
    is_current: bool = True


@dataclass(slots=True)
class JwtTokens:
    """Verifies tokens. Owned by the event loop."""

    jwt: Any
    """The package PyJWT."""
    path: Path
    issuer: str
    audience: str
    claim: str
    """Claim that names the principal."""
    algorithms: tuple[str, ...]
    wall_s: Callable[[], float] = time.time
    now_s: Callable[[], float] = time.monotonic
    _keys: _Keys = field(init=False)
    _file: WatchedFile = field(init=False)

    def __post_init__(self) -> None:
        self._file = WatchedFile(self.path, lambda: self.now_s())
        self._keys = self._load()
        if not self._keys.by_id:
            raise ConfigError([self._no_key()])

    def session(self, token: str) -> Session:
        """Return who a token names.

        Raises:
            RequestRefusedError: SASL_AUTHENTICATION_FAILED, it is not valid.
        """
        self._look()
        try:
            key_id = self.jwt.get_unverified_header(token).get("kid", "")
            known = self._keys.by_id.get(key_id)
            if known is None:
                raise refused("the token is signed with a key that this node does not know")
            key, _ = known
            claims = self.jwt.decode(
                token,
                key.key,
                # The key says what it is for; a token cannot choose another algorithm.
                algorithms=[name for name in self.algorithms if name == key.algorithm_name],
                issuer=self.issuer,
                audience=self.audience,
                leeway=LEEWAY_S,
                options={"require": ["exp", "iss", "aud", self.claim]},
            )
            expires_s = float(claims["exp"]) + LEEWAY_S
        except (self.jwt.PyJWTError, ValueError, TypeError, OverflowError, RecursionError) as error:
            # Besides what PyJWT raises, what it lets through from the parts of a strange token.
            raise refused(f"the token is not valid: {error}") from None
        name = claims[self.claim]
        if (
            not isinstance(name, str)
            or not name.isprintable()
            or not 0 < len(name) <= NAME_LENGTH_MAX
        ):
            raise refused(f"the claim {self.claim} of the token is no name")
        keys = self._keys

        def problem(_security: Security) -> str:
            self._look()
            if self.wall_s() >= expires_s:
                return "the token has expired"
            now = self._keys.by_id.get(key_id)
            same = keys.is_current or (now is not None and now[1] == known[1])
            return "" if same else "the key of the token is no longer accepted"

        return Session(name, f"jwt:{name}", problem)

    def _look(self) -> None:
        """Read the file again if it has changed."""
        if not self._file.has_changed():
            return
        try:
            keys = self._load()
        except ConfigError as error:
            _log.error("event=jwks_unusable error=%s", error)
            return
        self._keys.is_current = False
        self._keys = keys
        if not keys.by_id:
            _log.error("event=jwks_without_keys error=%s: no token is valid", self._no_key())
            return
        _log.info("event=jwks_loaded keys=%d", len(keys.by_id))

    def _load(self) -> _Keys:
        """Read the keys that one of our algorithms can use; there may be none.

        Raises:
            ConfigError: The file cannot be read, or is no JWKS.
        """
        try:
            with self.path.open("rb") as file:
                data = file.read(KEYS_BYTES_MAX + 1)
            if len(data) > KEYS_BYTES_MAX:
                raise ValueError(f"more than {KEYS_BYTES_MAX} bytes")
            described = _described(data)
            usable = dict(filter(None, map(self._usable, described)))
        except OSError as error:
            reason = error.strerror or error
            raise ConfigError([f"security.jwt_jwks_file {self.path}: {reason}"]) from error
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ConfigError([f"security.jwt_jwks_file {self.path}: {error}"]) from error
        return _Keys(usable)

    def _no_key(self) -> str:
        return f"security.jwt_jwks_file {self.path}: no key for {', '.join(self.algorithms)}"

    def _usable(self, described: Any) -> tuple[str, tuple[Any, Any]] | None:
        """Return a key's id and the key; None if it is not for our signatures."""
        try:
            key = self.jwt.PyJWK(described)
        except self.jwt.PyJWTError:
            return None
        if key.algorithm_name not in self.algorithms or key.public_key_use not in (None, "sig"):
            return None
        return key.key_id or "", (key, described)


def _described(data: bytes) -> list[dict[str, Any]]:
    """Return the keys of a JWKS as they stand in it.

    Raises:
        ValueError: It is none.
    """
    try:
        document = json.loads(data)
    except ValueError as error:
        raise ValueError(f"it is not JSON: {error}") from error
    keys = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(keys, list) or not all(isinstance(each, dict) for each in keys):
        raise ValueError('it is no JWKS: an object with a list of keys, {"keys": [{...}]}')
    return keys
