"""Evaluate commands: from a client's command to the records for the log.

``prepare`` is pure. It reads the image with everything proposed applied, and the
``EvaluationContext``; it changes neither. There is one module per family of commands.

See: ADR 3 and 10; statemachine/DESIGN.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from statemachine import commands
from statemachine.prepare.acls import prepare_create_acls, prepare_delete_acls
from statemachine.prepare.brokers import prepare_register_broker, prepare_unregister_broker
from statemachine.prepare.configs import prepare_incremental_alter_configs
from statemachine.prepare.context import EvaluationContext, Prepared
from statemachine.prepare.directories import (
    prepare_assign_replicas_to_dirs,
    prepare_cordon_log_dirs,
)
from statemachine.prepare.features import prepare_update_features
from statemachine.prepare.heartbeats import prepare_broker_heartbeat
from statemachine.prepare.imports import prepare_import_batch
from statemachine.prepare.in_sync import prepare_alter_partition
from statemachine.prepare.partitions import prepare_create_partitions, prepare_elect_leaders
from statemachine.prepare.positions import (
    check_combination,
    prepare_commit_position,
    with_position,
)
from statemachine.prepare.producer_ids import (
    prepare_allocate_producer_ids,
    prepare_init_producer_id,
)
from statemachine.prepare.scram import prepare_alter_user_scram_credentials
from statemachine.prepare.topics import (
    prepare_create_topic,
    prepare_delete_records,
    prepare_delete_topic,
)
from statemachine.prepare.view import View

_Evaluator: TypeAlias = Callable[[View, Any, EvaluationContext], Prepared]


def _prepare_with_position(
    view: View, command: commands.WithPosition, context: EvaluationContext
) -> Prepared:
    check_combination(command)
    prepared = prepare(view, command.command, context)
    return with_position(prepared, prepare_commit_position(view, command.position, context))


EVALUATORS: Mapping[type[commands.Command], _Evaluator] = {
    commands.IncrementalAlterConfigs: prepare_incremental_alter_configs,
    commands.CreateTopic: prepare_create_topic,
    commands.DeleteTopic: prepare_delete_topic,
    commands.CreatePartitions: prepare_create_partitions,
    commands.DeleteRecords: prepare_delete_records,
    commands.AlterPartition: prepare_alter_partition,
    commands.RegisterBroker: prepare_register_broker,
    commands.BrokerHeartbeat: prepare_broker_heartbeat,
    commands.UnregisterBroker: prepare_unregister_broker,
    commands.UpdateFeatures: prepare_update_features,
    commands.AllocateProducerIds: prepare_allocate_producer_ids,
    commands.InitProducerId: prepare_init_producer_id,
    commands.ElectLeaders: prepare_elect_leaders,
    commands.ImportBatch: prepare_import_batch,
    commands.CreateAcls: prepare_create_acls,
    commands.DeleteAcls: prepare_delete_acls,
    commands.CommitPosition: prepare_commit_position,
    commands.AlterUserScramCredentials: prepare_alter_user_scram_credentials,
    commands.CordonLogDirs: prepare_cordon_log_dirs,
    commands.AssignReplicasToDirs: prepare_assign_replicas_to_dirs,
    commands.WithPosition: _prepare_with_position,
}
"""Evaluator of every command."""


def prepare(view: View, command: commands.Command, context: EvaluationContext) -> Prepared:
    """Return the records that carry out ``command``, and the fields of its answer.

    Raises:
        CommandError: The command is refused; code and message give the reason.
    """
    return EVALUATORS[type(command)](view, command, context)


__all__ = ["EVALUATORS", "EvaluationContext", "Prepared", "View", "prepare"]
