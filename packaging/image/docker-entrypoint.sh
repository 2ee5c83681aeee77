#!/bin/sh
# The first process of a container. It has the name and the habits of the one in RabbitMQ's images: as root it hands /var/lib/rabbitmq to
# the user rabbitmq and goes on as that user; another user (--user, runAsUser) stays.
set -eu

case ${1-} in
  '' | -*) set -- rabbitmq-server "$@" ;;
esac

case $1 in
  rabbitmq* | leveret | perf-test | stream-perf-test)
    if [ "$(id -u)" = 0 ]; then
      if [ "$1" = rabbitmq-server ] || [ "${2-}" = server ]; then
        find /var/lib/rabbitmq ! -user rabbitmq -exec chown rabbitmq '{}' +
      fi
      exec setpriv --reuid=rabbitmq --regid=rabbitmq --init-groups "$0" "$@"
    fi
    ;;
esac

# RabbitMQ's images took these once and refuse them now. A node that passed them over would be less guarded than its owner thinks.
refused=
for name in RABBITMQ_DEFAULT_PASS_FILE RABBITMQ_DEFAULT_USER_FILE \
  RABBITMQ_MANAGEMENT_SSL_CACERTFILE RABBITMQ_MANAGEMENT_SSL_CERTFILE RABBITMQ_MANAGEMENT_SSL_DEPTH \
  RABBITMQ_MANAGEMENT_SSL_FAIL_IF_NO_PEER_CERT RABBITMQ_MANAGEMENT_SSL_KEYFILE RABBITMQ_MANAGEMENT_SSL_VERIFY \
  RABBITMQ_SSL_CACERTFILE RABBITMQ_SSL_CERTFILE RABBITMQ_SSL_DEPTH RABBITMQ_SSL_FAIL_IF_NO_PEER_CERT \
  RABBITMQ_SSL_KEYFILE RABBITMQ_SSL_VERIFY RABBITMQ_VM_MEMORY_HIGH_WATERMARK; do
  if [ -n "$(printenv "$name" || true)" ]; then
    echo "error: $name is set but deprecated" >&2
    refused=yes
  fi
done
if [ -n "$refused" ]; then
  echo 'error: put these settings into a file such as /etc/rabbitmq/conf.d/50-mine.conf instead' >&2
  exit 1
fi

# A volume of a RabbitMQ node holds nothing that this program reads; whoever changes the image should know at once.
for data in /var/lib/rabbitmq/mnesia/*@*; do
  if [ "$1" = rabbitmq-server ] && [ -d "$data" ] && [ ! -e "${LEVERET_DATA_DIR:-/var/lib/rabbitmq/mnesia/leveret}" ]; then
    echo "note: $data holds the data of a RabbitMQ node, which is neither read nor changed; this node starts empty" >&2
    echo 'note: definitions that RabbitMQ exported can be imported: rabbitmqctl import_definitions FILE' >&2
  fi
done

exec "$@"
