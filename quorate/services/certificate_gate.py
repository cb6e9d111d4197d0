"""``CertificateGate``: a certificate that is revoked or has ended reaches no method any more.

TLS looks at a certificate once per connection, and a connection may live for months. The gate looks
at each call, and at each message of an open stream before it is read or written.
"""

from __future__ import annotations

import inspect
import logging
import ssl
import time
from collections.abc import AsyncIterator, Callable
from typing import Any, Final

import grpc

from quorate.log_limit import REPEATED
from quorate.services.calls import Context
from quorate.services.revoked_certificates import RevokedCertificates
from quorate.services.shown_certificate import UNREADABLE, ShownCertificate, ShownCertificates
from quorum.transport.answers import abort
from quorum.transport.served_methods import Behaviour

_log = logging.getLogger("quorate.audit")

_OF_PEERS: Final = "/quorum.v1.RaftService/"
_ENDS: Final = {
    "revoked": "the certificate is revoked",
    "expired": "the certificate has expired",
    "unreadable": "the certificate cannot be compared with the list of revoked ones",
}


class CertificateGate:
    """Ends calls by their certificates. Owned by the event loop.

    A connection between nodes goes on when the certificate that began it ends: all of them would
    end in the same moment. The next connection needs the renewed one.
    """

    def __init__(
        self, revoked: RevokedCertificates | None, *, wall_s: Callable[[], float] = time.time
    ) -> None:
        """``revoked`` is the list of revoked certificates, if there is one."""
        self.revoked = revoked
        self._shown = ShownCertificates()
        self._wall_s = wall_s

    def wrap(self, method: str, behaviour: Behaviour, _kind: str) -> Behaviour:
        """Return the method behind the check."""
        if inspect.isasyncgenfunction(behaviour):

            async def stream(requests: Any, context: Context) -> AsyncIterator[Any]:
                checked = await self._checked(method, context)
                async for answer in behaviour(requests, checked):
                    if checked is not context:
                        await checked.check()
                    yield answer

            return stream

        async def call(requests: Any, context: Context) -> Any:
            return await behaviour(requests, await self._checked(method, context))

        return call

    def problem(self, certificate: ShownCertificate, method: str) -> str:
        """Return why a certificate is not accepted any more; empty while it is."""
        if self.revoked is not None:
            if certificate is UNREADABLE:
                return "unreadable"
            if self.revoked.has(certificate.issuer, certificate.number):
                return "revoked"
        is_over = self._wall_s() > certificate.not_after_s
        return "expired" if is_over and not method.startswith(_OF_PEERS) else ""

    def node_problem(self, certificate: bytes) -> str:
        """Return in words why the certificate (DER) of a node that this one calls is not accepted
        any more; empty while it is (``Link.certificate_problem``).
        """
        shown = self._shown.read(ssl.DER_cert_to_PEM_cert(certificate).encode())
        problem = self.problem(shown, _OF_PEERS)
        return _ENDS[problem] if problem else ""

    async def refuse(self, problem: str, method: str, context: Context) -> None:
        """End a call; always raises."""
        address = context.peer()
        _log.warning(
            "event=certificate_%s address=%s what=%s", problem, address, method,
            extra={REPEATED: f"{problem} {address.rpartition(':')[0]}"},
        )  # fmt: skip
        await abort(context, grpc.StatusCode.UNAUTHENTICATED, _ENDS[problem], ())

    async def _checked(self, method: str, context: Context) -> Any:
        """Return the context that a method gets: one that checks, if there is a certificate."""
        certificate = self._shown.of(context.auth_context())
        if certificate is None:
            return context
        checked = _CheckedContext(self, method, certificate, context)
        await checked.check()
        return checked


class _CheckedContext:
    """A call's context that checks the certificate with each message."""

    __slots__ = ("_certificate", "_context", "_gate", "_method")

    def __init__(
        self, gate: CertificateGate, method: str, certificate: ShownCertificate, context: Context
    ) -> None:
        self._gate = gate
        self._method = method
        self._certificate = certificate
        self._context = context

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    async def check(self) -> None:
        """End the call if the certificate is not accepted any more."""
        problem = self._gate.problem(self._certificate, self._method)
        if problem:
            await self._gate.refuse(problem, self._method, self._context)

    async def read(self) -> Any:
        """Return the next message, as gRPC's context does."""
        message = await self._context.read()
        await self.check()
        return message

    async def write(self, message: Any) -> None:
        """Write a message, as gRPC's context does."""
        await self.check()
        await self._context.write(message)
