"""The series of command lines. They build on one another, on a broker that holds nothing else."""

from __future__ import annotations

import shlex
from dataclasses import dataclass


@dataclass(frozen=True)
class Command:
    """One command line. What counts: the exit code and the text; of long texts the exit code alone; of documents their shape."""

    line: str
    counts: str = "text"
    stdin: str = ""

    @property
    def name(self) -> str:
        return self.line + (f" < {self.stdin!r}" if self.stdin else "")

    @property
    def words(self) -> list[str]:
        return shlex.split(self.line)


def lines(text: str, counts: str = "text") -> list[Command]:
    return [Command(line.strip(), counts) for line in text.strip().splitlines() if line.strip()]


DEFINITIONS = """{"queues":[{"vhost":"cta","name":"q1","durable":true,"auto_delete":false,"arguments":
{"x-max-length":5,"x-overflow":"reject-publish"}},{"vhost":"cta","name":"q2","durable":true,"auto_delete":false,"arguments":{}}],
"exchanges":[{"vhost":"cta","name":"x1","type":"fanout","durable":true,"auto_delete":false,"internal":false,"arguments":{}}],
"bindings":[{"source":"x1","vhost":"cta","destination":"q1","destination_type":"queue","routing_key":"k","arguments":{"s":"t"}}]}"""

SERIES: list[Command] = [
    *lines("rabbitmqctl\nrabbitmqctl help\nrabbitmqctl help list_queues\nrabbitmqctl list_queues --help\nrabbitmqctl --help", "code"),
    *lines("rabbitmqctl help zork\nrabbitmqctl version\nrabbitmqctl --version\nrabbitmqctl autocomplete list_q\nrabbitmqctl autocomplete"),
    *lines("rabbitmqctl lst_queues\nrabbitmqctl list_queues --bogus\nrabbitmqctl list_queues --formater json\nrabbitmqctl status extra"),
    *lines("rabbitmqctl status\nrabbitmqctl status --unit mb\nrabbitmqctl cluster_status", "code"),
    *lines("rabbitmqctl status --formatter json\nrabbitmqctl cluster_status --formatter json\nrabbitmq-diagnostics listeners --formatter json\nrabbitmq-diagnostics alarms --formatter json", "shape"),
    *lines(
        """
        rabbitmqctl ping
        rabbitmq-diagnostics -q ping
        rabbitmqctl await_startup
        rabbitmqctl await_online_nodes 1
        rabbitmq-diagnostics check_running
        rabbitmq-diagnostics -q is_running
        rabbitmq-diagnostics is_booting
        rabbitmq-diagnostics check_alarms
        rabbitmq-diagnostics alarms
        rabbitmq-diagnostics check_port_listener {amqp}
        rabbitmq-diagnostics check_port_listener abc
        rabbitmq-diagnostics check_protocol_listener amqp
        rabbitmq-diagnostics check_virtual_hosts
        rabbitmq-diagnostics check_certificate_expiration --within 1 --unit eons
        rabbitmq-diagnostics check_if_metadata_store_is_initialized
        rabbitmq-diagnostics check_if_any_deprecated_features_are_used
        rabbitmq-diagnostics server_version
        rabbitmq-diagnostics list_unresponsive_queues
        rabbitmqctl list_vhosts
        rabbitmqctl add_vhost cta
        rabbitmqctl add_vhost cta
        rabbitmqctl add_vhost
        rabbitmqctl add_vhost a b
        rabbitmqctl list_vhosts name description tags default_queue_type --formatter json
        rabbitmqctl list_vhosts name tags
        rabbitmqctl -q list_vhosts name tracing
        rabbitmqctl -s list_vhosts name tracing
        rabbitmqctl list_vhosts --no-table-headers
        rabbitmqctl list_vhosts name --formatter csv
        rabbitmqctl list_vhosts name --formatter erlang
        rabbitmqctl list_vhosts zork
        rabbitmqctl restart_vhost -p cta
        rabbitmqctl add_user jane secret
        rabbitmqctl add_user jane secret
        rabbitmqctl add_user
        rabbitmqctl add_user jim
        rabbitmqctl add_user jim zzz --pre-hashed-password
        rabbitmqctl add_user jim P91nGhGXHxApk4/8S+K6J46w8LjFiVNlfInyLQUhrgH0ZnWm --pre-hashed-password
        rabbitmqctl authenticate_user jim pw
        rabbitmqctl add_user '' secret
        rabbitmqctl list_users
        rabbitmqctl list_users --formatter json
        rabbitmqctl set_user_tags jane monitoring policymaker
        rabbitmqctl set_user_tags nobody monitoring
        rabbitmqctl set_user_tags jane
        rabbitmqctl change_password jane other
        rabbitmqctl change_password nobody other
        rabbitmqctl authenticate_user jane other
        rabbitmqctl authenticate_user jane wrong
        rabbitmqctl authenticate_user nobody wrong
        rabbitmqctl clear_password jim
        rabbitmqctl clear_password nobody
        rabbitmqctl hash_password
        rabbitmqctl set_permissions -p cta jane '^a' '.*' ''
        rabbitmqctl set_permissions -p zork jane '^a' '.*' ''
        rabbitmqctl set_permissions -p cta nobody '^a' '.*' ''
        rabbitmqctl set_permissions -p cta jane '(' '.*' ''
        rabbitmqctl set_permissions -p cta jane '.*'
        rabbitmqctl list_permissions -p cta
        rabbitmqctl list_permissions -p cta --formatter json
        rabbitmqctl list_permissions -p zork
        rabbitmqctl list_user_permissions jane
        rabbitmqctl list_user_permissions nobody
        rabbitmqctl set_permissions_globally jim a b c
        rabbitmqctl list_user_permissions jim
        rabbitmqctl clear_permissions -p cta jim
        rabbitmqctl clear_permissions -p cta nobody
        rabbitmqctl set_topic_permissions -p cta jane amq.topic '^a' '^b'
        rabbitmqctl set_topic_permissions -p cta nobody amq.topic a b
        rabbitmqctl list_topic_permissions -p cta
        rabbitmqctl list_user_topic_permissions jane
        rabbitmqctl list_user_topic_permissions nobody
        rabbitmqctl clear_topic_permissions -p cta jane amq.topic
        rabbitmqctl clear_topic_permissions -p cta jane
        """
    ),
    Command("rabbitmqctl import_definitions {file}"),
    *lines(
        """
        rabbitmqctl list_queues -p cta
        rabbitmqctl list_queues -p cta name arguments durable auto_delete type consumers state exclusive
        rabbitmqctl list_queues -p cta name messages --formatter json
        rabbitmqctl list_queues -p cta name messages --formatter csv
        rabbitmqctl list_queues -p cta name arguments --formatter json
        rabbitmqctl -q list_queues -p cta name messages
        rabbitmqctl -s list_queues -p cta name messages
        rabbitmqctl list_queues -p cta --no-table-headers name
        rabbitmqctl list_queues -p cta name zork zork2
        rabbitmqctl list_queues -p cta --online
        rabbitmqctl list_queues -p cta --offline
        rabbitmqctl list_queues -p cta -t 5 --local
        rabbitmqctl list_queues -p zork
        rabbitmqctl list_exchanges -p cta
        rabbitmqctl list_exchanges -p cta name type durable auto_delete internal arguments policy
        rabbitmqctl list_exchanges -p zork
        rabbitmqctl list_bindings -p cta
        rabbitmqctl list_bindings -p cta source_name routing_key arguments
        rabbitmqctl list_bindings -p cta --formatter json
        rabbitmqctl list_bindings -p zork
        rabbitmqctl list_consumers -p cta
        rabbitmqctl list_consumers -p cta --formatter json
        rabbitmqctl list_consumers -p zork
        rabbitmqctl list_connections
        rabbitmqctl list_connections zork
        rabbitmqctl list_channels
        rabbitmqctl close_all_connections -p cta maintenance
        rabbitmqctl close_all_connections --global maintenance
        rabbitmqctl close_all_user_connections jane maintenance
        rabbitmqctl close_connection
        rabbitmqctl set_policy -p cta p1 '^q' '{{"max-length":10}}' --priority 3 --apply-to queues
        rabbitmqctl set_policy -p cta p2 '^q' zork
        rabbitmqctl set_policy -p cta p2 '^q' '{{"max-length":"x"}}'
        rabbitmqctl set_policy -p cta p2 '^q' '{{"max-length":10}}' --priority abc
        rabbitmqctl set_policy -p zork p2 '^q' '{{"max-length":10}}'
        rabbitmqctl set_policy -p cta p2
        rabbitmqctl list_policies -p cta
        rabbitmqctl list_policies -p cta --formatter json
        rabbitmqctl list_policies -p zork
        rabbitmq-diagnostics list_policies_that_match -p cta q1
        rabbitmq-diagnostics list_policies_that_match -p cta zork
        rabbitmqctl clear_policy -p cta p1
        rabbitmqctl clear_policy -p cta p1
        rabbitmqctl set_operator_policy -p cta o1 '^q' '{{"max-length":10}}'
        rabbitmqctl list_operator_policies -p cta
        rabbitmqctl clear_operator_policy -p cta o1
        rabbitmqctl clear_operator_policy -p cta o1
        rabbitmqctl set_parameter -p cta zork x '{{}}'
        rabbitmqctl list_parameters -p cta
        rabbitmqctl clear_parameter -p cta zork x
        rabbitmqctl set_global_parameter zork '{{"a":1}}'
        rabbitmqctl set_global_parameter zork zork
        rabbitmqctl clear_global_parameter zork
        rabbitmqctl clear_global_parameter zork
        rabbitmqctl set_vhost_limits -p cta '{{"max-queues":1000}}'
        rabbitmqctl set_vhost_limits -p cta zork
        rabbitmqctl list_vhost_limits -p cta
        rabbitmqctl list_vhost_limits --global
        rabbitmqctl clear_vhost_limits -p cta
        rabbitmqctl list_vhost_limits -p cta
        rabbitmqctl set_user_limits jane '{{"max-channels":1000}}'
        rabbitmqctl set_user_limits nobody '{{"max-channels":1000}}'
        rabbitmqctl list_user_limits --user jane
        rabbitmqctl list_user_limits --global
        rabbitmqctl clear_user_limits jane all
        rabbitmqctl purge_queue -p cta q1
        rabbitmqctl purge_queue -p cta zork
        rabbitmqctl purge_queue -p zork q1
        rabbitmqctl delete_queue -p cta q1 --if-empty
        rabbitmqctl delete_queue -p cta q2 -e -u
        rabbitmqctl delete_queue -p cta q2
        rabbitmqctl delete_queue
        rabbitmqctl export_definitions
        rabbitmqctl export_definitions /nowhere/file
        rabbitmqctl export_definitions {folder}/exported.json
        rabbitmqctl import_definitions /nowhere/file
        rabbitmqctl import_definitions {bad}
        rabbitmqctl rotate_logs
        rabbitmqctl forget_cluster_node other@host
        rabbitmqctl sync_queue q1
        rabbitmq-queues rebalance classic
        rabbitmq-queues check_if_node_is_quorum_critical
        rabbitmq-queues grow other@host all
        rabbitmq-queues quorum_status zork
        rabbitmq-streams stream_status zork
        rabbitmq-plugins is_enabled rabbitmq_management
        rabbitmq-plugins list -m -q rabbitmq_management
        rabbitmqctl trace_on -p /
        rabbitmqctl trace_off -p /
        rabbitmqctl set_cluster_name cluster-of-one
        rabbitmqctl set_log_level info
        rabbitmqctl set_log_level zork
        rabbitmqctl set_disk_free_limit zork
        rabbitmqctl set_disk_free_limit mem_relative 1.0
        rabbitmqctl set_disk_free_limit 50MB
        rabbitmqctl set_vm_memory_high_watermark 2
        rabbitmqctl set_vm_memory_high_watermark 0.6
        rabbitmqctl set_vm_memory_high_watermark absolute 8GB
        rabbitmqctl set_vm_memory_high_watermark relative 0.6
        rabbitmqctl force_gc
        rabbitmqctl node_health_check
        rabbitmqctl list_feature_flags zork
        rabbitmqctl enable_feature_flag all
        rabbitmqctl enable_feature_flag zork
        rabbitmqctl suspend_listeners
        rabbitmqctl resume_listeners
        rabbitmq-upgrade await_online_quorum_plus_one -t 3
        rabbitmq-upgrade drain
        rabbitmq-upgrade revive
        rabbitmqctl delete_user jim
        rabbitmqctl delete_user jane
        rabbitmqctl delete_user jane
        rabbitmqctl delete_vhost cta
        rabbitmqctl delete_vhost cta
        rabbitmqctl delete_vhost
        rabbitmqctl add_vhost meta --description 'a host' --tags a,b
        rabbitmqctl list_vhosts name description tags
        rabbitmqctl set_vhost_tags meta x y
        rabbitmqctl update_vhost_metadata meta --description hello --tags z
        rabbitmqctl list_vhosts name description tags default_queue_type --formatter json
        rabbitmqctl enable_vhost_deletion_protection meta
        rabbitmqctl delete_vhost meta
        rabbitmqctl disable_vhost_deletion_protection meta
        rabbitmqctl delete_vhost meta
        rabbitmq-upgrade post_upgrade
        rabbitmq-upgrade has_reached_target_cluster_size
        rabbitmq-diagnostics tls_versions
        rabbitmq-diagnostics resolve_hostname localhost
        rabbitmq-diagnostics check_if_node_is_quorum_critical
        rabbitmq-diagnostics check_local_alarms
        rabbitmq-plugins is_enabled rabbitmq_zork
        rabbitmq-diagnostics cipher_suites --format zork
        rabbitmq-diagnostics discover_peers
        rabbitmq-diagnostics enable_auth_attempt_source_tracking
        rabbitmq-diagnostics disable_auth_attempt_source_tracking
        rabbitmq-diagnostics reset_node_auth_attempt_metrics
        """
    ),
    # What is for clusters, other queue types and plugins.
    *lines(
        """
        rabbitmqctl deactivate_free_disk_space_monitoring
        rabbitmqctl activate_free_disk_space_monitoring
        rabbitmq-diagnostics activate_free_disk_space_monitoring --formatter json
        rabbitmqctl activate_free_disk_space_monitoring extra
        rabbitmqctl list_channel_interceptors
        rabbitmqctl set_channel_interceptor_priorities
        rabbitmqctl set_channel_interceptor_priorities zork 1
        rabbitmqctl set_channel_interceptor_priorities zork
        rabbitmqctl set_channel_interceptor_priorities zork abc
        rabbitmqctl reconcile_vhosts
        rabbitmqctl check_if_any_deprecated_features_are_used
        rabbitmqctl has_reached_target_cluster_size
        rabbitmqctl reset_stats_db
        rabbitmqctl reset_stats_db --all
        rabbitmq-diagnostics certificates
        rabbitmq-diagnostics certificates --formatter json
        rabbitmq-diagnostics consume_event_stream --duration abc
        rabbitmq-diagnostics log_tail_stream -d abc
        rabbitmq-diagnostics consume_event_stream --duration 1 --pattern ^zork
        rabbitmq-diagnostics check_if_new_quorum_queue_replicas_have_finished_initial_sync
        rabbitmq-diagnostics quorum_status zork
        rabbitmq-queues quorum_status zork --formatter json
        rabbitmq-diagnostics reclaim_quorum_memory zork
        rabbitmq-queues peek zork 1
        rabbitmq-queues peek zork abc
        rabbitmq-diagnostics stream_status zork
        rabbitmq-queues stream_status zork --tracking
        rabbitmq-streams stream_status zork
        rabbitmq-queues autocomplete quo
        rabbitmq-diagnostics autocomplete check_if_c
        rabbitmq-plugins autocomplete dir
        rabbitmq-queues force_checkpoint
        rabbitmq-queues force_checkpoint --errors-only --queue-pattern x
        rabbitmq-queues grow rabbit@zork all
        rabbitmq-queues grow rabbit@zork zork
        rabbitmq-queues grow rabbit@zork all --membership zork
        rabbitmq-queues grow_to_count 1 all
        rabbitmq-queues grow_to_count 0 all
        rabbitmq-queues shrink rabbit@zork
        rabbitmq-queues add_member zork rabbit@zork
        rabbitmq-queues delete_member zork rabbit@zork
        rabbitmq-queues transfer_leadership zork rabbit@zork
        rabbitmq-streams grow rabbit@zork all
        rabbitmq-streams shrink rabbit@zork
        rabbitmq-streams transfer_leadership zork rabbit@zork
        rabbitmq-streams add_replica zork rabbit@zork
        rabbitmq-streams delete_replica zork rabbit@zork
        rabbitmq-streams restart_stream zork
        rabbitmq-streams delete_super_stream zork
        rabbitmq-streams list_stream_connections
        rabbitmqctl list_stream_connections --formatter json
        rabbitmqctl list_stream_connections zork
        rabbitmq-diagnostics list_stream_consumers
        rabbitmq-diagnostics list_stream_publishers
        rabbitmqctl list_stream_consumer_groups
        rabbitmqctl list_stream_group_consumers
        rabbitmqctl list_stream_group_consumers --stream zork --reference r
        rabbitmq-streams activate_stream_consumer --stream zork --reference r
        rabbitmq-streams activate_stream_consumer
        rabbitmq-streams list_stream_tracking zork
        rabbitmq-streams list_stream_tracking zork --all --offset
        rabbitmq-streams reset_offset --stream zork --reference r
        rabbitmq-plugins directories --offline --online
        rabbitmq-plugins set rabbitmq_zork
        rabbitmqctl hash_password abc --hashing-algorithm zork
        rabbitmqctl enable_feature_flag -o zork
        rabbitmqctl close_all_connections --global --limit abc why
        rabbitmqctl list_user_limits --global
        rabbitmq-diagnostics memory_breakdown --unit zork
        rabbitmq-plugins list --offline
        rabbitmq-plugins is_enabled rabbitmq_zork --offline --online
        rabbitmq-plugins enable --offline --online rabbitmq_zork
        rabbitmq-plugins list -m -v
        rabbitmq-plugins list -m rabbitmq_management$
        rabbitmqctl list_vhosts --no-quiet
        rabbitmqctl list_vhosts --quiet=true
        rabbitmqctl list_vhosts --no-zork
        rabbitmqctl list_vhosts --formatter
        rabbitmqctl list_vhosts --timeout abc
        rabbitmqctl --script-name rabbitmq-plugins list_vhosts
        rabbitmqctl update_vhost_metadata zork --no-protected-from-deletion
        """
    ),
    *lines(
        """
        rabbitmq-diagnostics list_policies_with_classic_queue_mirroring
        rabbitmq-diagnostics coordinator_status
        rabbitmq-diagnostics list_network_interfaces
        rabbitmq-diagnostics log_tail_stream --duration 1
        rabbitmq-plugins directories
        rabbitmqctl hash_password abc --hashing-algorithm sha256
        rabbitmqctl hash_password abc --hashing-algorithm sha512
        rabbitmq-plugins is_enabled rabbitmq_management --offline
        rabbitmqctl list_hashes
        rabbitmqctl join_cluster --disc rabbit@zork
        rabbitmqctl forget_cluster_node --offline rabbit@zork
        rabbitmq-diagnostics erlang_version --details
        rabbitmq-diagnostics runtime_thread_stats --sample-interval abc
        """,
        "code",
    ),
    *lines("rabbitmq-diagnostics list_network_interfaces --formatter json", "code"),
    *lines("rabbitmq-diagnostics cipher_suites\nrabbitmq-diagnostics cipher_suites --all --format erlang\nrabbitmq-diagnostics cipher_suites --format map", "code"),
    *lines("rabbitmq-diagnostics os_env\nrabbitmq-diagnostics command_line_arguments", "code"),
    *lines("rabbitmq-diagnostics cipher_suites --formatter json", "shape"),
]
