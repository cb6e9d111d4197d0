"""An S3 server on loopback that checks signatures: moto behind a socket, with faults on request."""

from __future__ import annotations

import secrets
import socket
import threading
import urllib.request
from collections.abc import Callable, Iterable
from typing import Any, Self

import boto3
from moto.moto_server.werkzeug_app import (
    DomainDispatcherApplication,
    MotoRequestHandler,
    create_backend_app,
)
from werkzeug.serving import BaseWSGIServer, make_server

_REGION = "us-east-1"
_POLICY = (
    '{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}'
    ', {"Effect": "Deny", "Action": "s3:CreateBucket", "Resource": "*"}]}'
)


class S3Server:
    """Buckets that one user may use, but not make. All state is in this process."""

    def __init__(self) -> None:
        self._app = DomainDispatcherApplication(create_backend_app)
        self._server: BaseWSGIServer | None = None
        self._thread: threading.Thread | None = None
        self._port = 0
        self._writes_left: int | None = None
        self.is_down = False
        """Each connection is reset, before or instead of an answer."""
        self.writes = 0
        """Objects that were sent, also those that were not stored."""
        self.environment: dict[str, str] = {}
        """Endpoint and credentials, as a person sets them."""

    def __enter__(self) -> Self:
        self.start()
        self._check_signatures("inf")
        root = {"aws_access_key_id": "root", "aws_secret_access_key": "root"}
        with_root: dict[str, Any] = {
            **root, "endpoint_url": self.endpoint, "region_name": _REGION,
        }  # fmt: skip
        iam = boto3.client("iam", **with_root)
        name = secrets.token_hex(8)
        iam.create_user(UserName=name)
        iam.put_user_policy(UserName=name, PolicyName="backup", PolicyDocument=_POLICY)
        key = iam.create_access_key(UserName=name)["AccessKey"]
        self._s3: Any = boto3.client("s3", **with_root)
        self.bucket = f"quorate-{name}"
        self._s3.create_bucket(Bucket=self.bucket)
        self._check_signatures("0")
        self.environment = {
            "AWS_ACCESS_KEY_ID": key["AccessKeyId"],
            "AWS_SECRET_ACCESS_KEY": key["SecretAccessKey"],
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_DEFAULT_REGION": _REGION,
            "AWS_CONFIG_FILE": "/nonexistent",
            "AWS_SHARED_CREDENTIALS_FILE": "/nonexistent",
        }
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def endpoint(self) -> str:
        """Its URL; the same after ``stop`` and ``start``."""
        return f"http://127.0.0.1:{self._port}"

    def start(self) -> None:
        """Listen, on the former port if there was one."""
        server = make_server(
            "127.0.0.1", self._port, self._serve, threaded=True, request_handler=_QuietHandler
        )
        self._port = server.server_port
        self._server = server
        self._thread = threading.Thread(target=server.serve_forever, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Refuse connections from now on; what was stored stays."""
        if self._server is not None and self._thread is not None:
            self._server.shutdown()
            self._thread.join()
            self._server.server_close()
            self._server = None

    def fail_after(self, writes: int) -> None:
        """Store that many objects from now on, then be down."""
        self._writes_left = writes

    def heal(self) -> None:
        """Answer again."""
        self._writes_left, self.is_down = None, False

    def names(self) -> set[str]:
        """The names of all objects in the bucket, asked for without the server."""
        from moto.s3.models import s3_backends

        (backend,) = (
            each
            for account in s3_backends.values()
            for each in account.values()
            if self.bucket in each.buckets
        )
        return set(backend.buckets[self.bucket].keys)

    def _serve(
        self, environ: dict[str, Any], start_response: Callable[..., Any]
    ) -> Iterable[bytes]:
        if environ["REQUEST_METHOD"] == "PUT":
            self.writes += 1
            if self._writes_left == 0:
                self.is_down = True
            elif self._writes_left is not None:
                self._writes_left -= 1
        if self.is_down:
            connection = environ["werkzeug.socket"]
            connection.shutdown(socket.SHUT_RDWR)
            return []
        answer: Iterable[bytes] = self._app(environ, start_response)
        return answer

    def _check_signatures(self, after_actions: str) -> None:
        request = urllib.request.Request(
            f"{self.endpoint}/moto-api/reset-auth",
            data=after_actions.encode(),
            headers={"Content-Type": "text/plain"},
        )
        with urllib.request.urlopen(request) as answer:
            answer.read()


class _QuietHandler(MotoRequestHandler):  # type: ignore[misc]
    def log(self, *_: object) -> None:
        pass

    def log_request(self, *_: object) -> None:
        pass
