"""``ServerNode``: everything of one server process, built, started and stopped in order.

Wiring only. Built bottom up: stores, shell, network, replica, services, listeners, endpoint.
"""

from __future__ import annotations

import asyncio
import random
import secrets
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from prometheus_client import CollectorRegistry

from metrics.collectors import ScrapeCollector
from metrics.families import Families
from metrics.health import run_checks
from metrics.http import Endpoint as MetricsEndpoint
from metrics.http import HttpServer
from metrics.observer import Observer
from metrics.process_metrics import register_process_metrics
from quorate.config.addresses import parse_address
from quorate.config.secret_files import read_secret
from quorate.config.security import load_token
from quorate.config.server_config import ServerConfig
from quorate.config.voter_addresses import parse_voter
from quorate.replica.boot import BootReport, Stores, open_stores
from quorate.replica.replica import Replica, ReplicaConfig
from quorate.server.access_policy import access_policy
from quorate.server.boot_report import count_boot
from quorate.server.counters import COUNTERS
from quorate.server.disk_work import end_disk_work
from quorate.server.gauges import GAUGES
from quorate.server.health_checks import HealthChecks
from quorate.server.host import ServerHost
from quorate.server.known_addresses import bootstrap_peers, own_endpoints, relay_peers
from quorate.server.listeners import Listeners
from quorate.server.loop_busy import busy_meter
from quorate.server.metering import CommandMeter
from quorate.server.rpc_metrics import RpcCounter
from quorate.server.scrape import Scrape
from quorate.server.scrubber import Scrubber
from quorate.server.served_node import ReplicaNode
from quorate.server.tracing import command_tracing
from quorate.services.access_gate import AccessGate
from quorate.services.admission import ServiceLimits
from quorate.services.certificate_gate import CertificateGate
from quorate.services.registration import ClientServices
from quorate.services.revoked_certificates import RevokedCertificates
from quorate.services.shown_certificate import can_read_certificates
from quorum.core.contract.local_events import ShutDown
from quorum.core.state.upstream import RelayPlan
from quorum.errors import ListenError, StorageError
from quorum.listen_problem import listen_problem
from quorum.ports import FileSystem
from quorum.runtime.clock import SystemClock
from quorum.supervisor import Supervisor
from quorum.transport.counters import TransportCounters
from quorum.transport.hello import Hello
from quorum.transport.link import SERVICE_NAME, Link
from quorum.transport.node_names import names_by
from quorum.transport.peers import PeerNetwork
from quorum.transport.security import TlsFiles, TlsIdentity

_POLL_S = 0.01
_READY_POLL_S = 0.1


class ServerNode:
    """One running node. Construct it on the event loop; ``start``, ``transfer_leadership``,
    ``stop``.

    ``on_failure`` is called with what ends the node, on the loop's thread; the first call counts.
    """

    def __init__(
        self,
        config: ServerConfig,
        fs: FileSystem,
        *,
        rng: random.Random,
        on_failure: Callable[[BaseException], None],
    ) -> None:
        """Open the data directory and bind nothing yet.

        Raises:
            QuorateError: The directory or the configuration cannot be used.
        """
        self._config = config
        self._loop = asyncio.get_running_loop()
        self._clock = SystemClock()
        self._is_draining = False
        self._is_started = False
        self._ready_task: asyncio.Task[None] | None = None
        self._registry = CollectorRegistry()
        self._observer = Observer(Families(self._registry))
        register_process_metrics(self._registry)
        self._meter = CommandMeter(self._observer)
        self._names = names_by(config.tls.node_name, config.tls.observer_name)
        self._tls = self._load_tls()
        began = time.perf_counter()
        stores = self._open_stores(fs)
        count_boot(self._observer, stores.report, time.perf_counter() - began)
        self.boot_report: BootReport = stores.report
        self.node_id = stores.identity.node_id
        self.client_address = config.listeners.reached_by_clients_at
        self._tracing = command_tracing(
            config.tracing, node_id=self.node_id, cluster_id=stores.identity.cluster_id
        )
        self.host = ServerHost(
            stores,
            config,
            clock=self._clock,
            fs=fs,
            rng=rng,
            observer=self._observer,
            on_failure=on_failure,
            tracing=self._tracing,
        )
        self._bootstrap = bootstrap_peers(config)
        self._relays = relay_peers(config)
        has_voters = any(each.voters for each in stores.state.voters)
        self.knows_no_peer = not (has_voters or self._bootstrap or self._relays)
        """Whether it has nobody to ask for a leader: a new node without ``bootstrap.servers``."""
        self._supervisor = Supervisor()
        self._certificate_gate = self._make_certificate_gate()
        self._link = self._make_link(stores)
        self.host.network = self._network = PeerNetwork(self._link)
        self.host.replica = self.replica = Replica(stores, self.host, self._replica_config(stores))
        self.host.attach(self.replica)
        self._scrubber = Scrubber(self.replica, self.host, config.scrub)
        self._health = HealthChecks(self.replica, config)
        self._metrics = self._metrics_server(self._link.counters)
        self._serve_clients()

    def _open_stores(self, fs: FileSystem) -> Stores:
        config = self._config
        return open_stores(
            fs,
            config.node.data_dir,
            node_id=config.node.id,
            log_config=config.log,
            snapshot_config=config.snapshot,
            clock=self._clock,
            static_voters=tuple(parse_voter(text) for text in config.bootstrap.voters),
            bootstrap_without=config.bootstrap.missing_bootstrap_voters,
            uses_native_codec=config.cluster.record_codec == "native",
        )

    def _make_link(self, stores: Stores) -> Link:
        gate = self._certificate_gate
        return Link(
            Hello(
                stores.identity.cluster_id,
                stores.key,
                self._config.cluster.digest(),
                process_id=secrets.token_bytes(16),
                log_incarnation_id=stores.identity.log_incarnation_id,
                tcp_port=self._config.listeners.tcp_port,
            ),
            self.host,
            self._config.quorum.request_timeout_ms / 1000,
            self._tls,
            self._names,
            certificate_problem=gate.node_problem if gate is not None and gate.revoked else None,
            snapshot_response_bytes_max=self._config.quorum.snapshot_response_bytes_max,
            supervisor=self._supervisor,
        )

    def _replica_config(self, stores: Stores) -> ReplicaConfig:
        config = self._config
        controller = config.controller_of(stores.identity.cluster_id)
        return ReplicaConfig(
            config.quorum,
            replace(controller, kraft_version=stores.kraft_version),
            config.snapshot,
            bootstrap=tuple(self._bootstrap),
            relays=RelayPlan(config.relay.enable, tuple(self._relays)),
            endpoints=own_endpoints(config),
        )

    def _serve_clients(self) -> None:
        node = ReplicaNode(
            self.replica,
            clock=self._clock,
            client_address=self.client_address,
            sasl_address=self._config.listeners.reached_by_sasl_clients_at,
            guard=self.host.guard,
            meter=self._meter,
            check_quorum_ms=self._config.quorum.check_quorum_ms,
            tracing=self._tracing,
        )
        policy = access_policy(self._config.security, self._names, self._observer.access_denied)
        self._services = ClientServices(
            node,
            limits=ServiceLimits(
                self._config.limits.streams_max,
                self._config.limits.watches_max,
                self._config.limits.unary_calls_max,
                self._config.limits.streams_per_caller_max,
                self._config.limits.message_ms_max / 1000,
                self._config.limits.stream_idle_ms_max / 1000,
                self._config.cluster.producer_window,
            ),
            other_service_names=(SERVICE_NAME,),
            policy=policy,
            on_authentication=self._observer.authenticated,
        )
        listeners = self._config.listeners
        self._listeners = Listeners(
            self._network.service,
            self._services,
            client_address=listeners.client,
            peer_address=listeners.peer_address,
            credentials=self._tls.server_credentials if self._tls else None,
            client_message_bytes_max=self._config.limits.client_message_bytes_max,
            wrappers=(
                RpcCounter(self._observer),
                *([self._certificate_gate] if self._certificate_gate is not None else []),
                *([] if policy is None else [AccessGate(node, policy)]),
            ),
            with_reflection=self._config.security.reflection,
            with_channelz=self._config.security.channelz,
        )
        if listeners.sasl and self._tls:
            self._listeners.add_sasl(
                listeners.sasl, self._tls.server_credentials(asks_for_certificate=False)
            )
        if listeners.peer_tcp:
            self._listeners.add_tcp(listeners.peer_tcp, self._link)

    # ------------------------------------------------------------------ start and stop

    async def start(self) -> None:
        """Let the replica take its first role, then listen: no request is answered before.

        Raises:
            ListenError: The metrics address cannot be listened on.
        """
        self.host.start()
        if self._metrics is not None:
            await self._start_metrics(self._metrics)
        await self._replay()
        self._network.set_peers(self._bootstrap | self._relays)
        self._is_started = True
        self.host.guard(self.replica.start)
        await self._listeners.start()
        self._scrubber.start()
        self._ready_task = self._supervisor.start("readiness", self._report_readiness)

    async def _replay(self) -> None:
        """Apply what is known to be committed in turns: health is asked for and signals come."""
        is_behind = True

        def some() -> None:
            nonlocal is_behind
            is_behind = self.replica.replay()

        while is_behind:
            # Stays so if the node has failed.
            is_behind = False
            self.host.guard(some)
            await asyncio.sleep(0)

    async def _start_metrics(self, server: HttpServer) -> None:
        try:
            await server.start()
        except OSError as error:
            raise ListenError(
                f"cannot listen on {self._config.metrics.listen}: {listen_problem(error)}"
            ) from error

    async def transfer_leadership(self) -> None:
        """Become unready and transfer leadership; bounded in time, may be cancelled."""
        self._is_draining = True
        await self._services.drain()
        deadline = self._loop.time() + self._config.limits.shutdown_ms_max / 1000
        self.host.notify(ShutDown())
        while (  # noqa: ASYNC110 - the role and the connections have no event to wait for
            self.replica.node.role_name in ("Leader", "Resigned")
            and self._has_successor()
            and self._loop.time() < deadline
        ):
            await asyncio.sleep(_POLL_S)

    def _has_successor(self) -> bool:
        """Whether any other voter can still be reached; a cluster that stops has none left."""
        connected = {each.peer for each in self._network.statuses() if each.is_connected}
        return any(voter.key.id in connected for voter in self.replica.node.voters)

    async def stop(self) -> None:
        """Close everything; what was submitted to the writer is written, or ``on_failure`` called.

        A checkpoint under way is abandoned, and its failure reported. The writer and a checkpoint
        that the disk holds are each waited for ``limits.shutdown_ms_max`` at most; readings are
        waited for a second.

        Raises:
            StorageError: The disk did not take it in time; nothing more is touched then.
        """
        self._is_draining = True
        self._scrubber.stop()
        if self._ready_task is not None:
            self._ready_task.cancel()
        if self._is_started:
            await self._services.stop()
            await self._network.stop()
            await self._listeners.stop()
            self._services.close()
            if self._metrics is not None:
                await self._metrics.close()
        has_ended = await end_disk_work(
            self.host if self._is_started else None,
            self.replica,
            self.host.executor,
            self._scrubber.ended,
            limit_s=self._config.limits.shutdown_ms_max / 1000,
        )
        if not has_ended:
            raise StorageError(
                "the disk hangs: not everything was written", self._config.node.data_dir
            )
        self.replica.close()
        if self._tracing is not None:
            await asyncio.to_thread(self._tracing.stop)

    # ------------------------------------------------------------------ inside

    async def _report_readiness(self) -> None:
        checks = self._health.ready_checks(lambda: self._is_draining)
        reported: bool | None = None
        while True:
            is_ready = all(result.ok for result in run_checks(checks))
            if is_ready is not reported:
                reported = is_ready
                await self._services.health.set_ready(is_ready=is_ready)
            self._meter.report(self.replica.controller.take_answer_counts())
            self._observer.settle()
            await asyncio.sleep(_READY_POLL_S)

    def _metrics_server(self, transport: TransportCounters) -> HttpServer | None:
        live = self._health.live_checks()
        ready = self._health.ready_checks(lambda: self._is_draining)
        busy_ratio = busy_meter()
        ScrapeCollector(
            self._registry,
            GAUGES + COUNTERS,
            lambda: Scrape(
                self.replica,
                self._clock.now_ms(),
                transport,
                self._supervisor,
                self._scrubber,
                (*self._network.quotas, *self._listeners.quotas(), *self._services.quotas()),
                self._config.quorum.held_fetches_max,
                busy_ratio,
                self._meter,
            ),
            (*live, *ready),
        )
        if not self._config.metrics.listen:
            return None
        host, port = parse_address(self._config.metrics.listen)
        token = load_token(self._config.metrics.token_file)
        is_secure = self._config.metrics.tls and self._tls is not None
        return HttpServer(
            MetricsEndpoint(self._registry, live=live, ready=ready, token=token),
            host=host,
            port=port,
            tls=self._tls.metrics_context() if is_secure and self._tls else None,
        )

    def _make_certificate_gate(self) -> CertificateGate | None:
        tls = self._config.tls
        if tls.crl_file != Path():
            return CertificateGate(RevokedCertificates(tls.crl_file, tls.ca_file))
        is_shown = tls.is_enabled and tls.require_client_cert
        return CertificateGate(None) if is_shown and can_read_certificates() else None

    def _load_tls(self) -> TlsIdentity | None:
        tls = self._config.tls
        if not tls.is_enabled:
            return None
        own_names = self._names.all_of(self._config.node.id) if self._names else ()
        password = ""
        if tls.key_password_file != Path():
            password = read_secret(tls.key_password_file, "tls.key_password_file")
        files = TlsFiles(
            tls.cert_file, tls.key_file, tls.ca_file, own_names, password, tls.crl_file
        )
        return TlsIdentity(files, require_client_certificate=tls.require_client_cert)
