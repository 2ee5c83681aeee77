"""The tasks that test_celery.py has a worker run, once as Celery comes and once with quorum queues. Nothing else is set but where the
broker is and where results go."""

import os

from celery import Celery

app = Celery("tasks", broker=os.environ["CELERY_URL"], backend="rpc://")

# What Celery's documentation says of quorum queues. Tasks that wait do so in the broker then, which takes a topic exchange.
quorum = Celery("quorum", broker=os.environ["CELERY_URL"], backend="rpc://", set_as_current=False)
quorum.conf.update(
    task_default_queue="celery.quorum",
    task_default_queue_type="quorum",
    task_default_exchange_type="topic",
    broker_transport_options={"confirm_publish": True},
    task_acks_late=True,
    worker_prefetch_multiplier=1,
)


def add(x, y):
    return x + y


def stubborn(self, failures):
    """Fails so many times, and says how often it was tried."""
    if self.request.retries < failures:
        raise self.retry(countdown=1, max_retries=failures)
    return self.request.retries


def dies_once(path):
    """Takes its worker with it, but not when it comes again."""
    if not os.path.exists(path):
        open(path, "w").close()
        os.kill(os.getppid(), 9)
        os.kill(os.getpid(), 9)
    return "came again"


for one in (app, quorum):
    one.task(add, name="celery_app.add")
    one.task(stubborn, name="celery_app.stubborn", bind=True)
quorum.task(dies_once, name="celery_app.dies_once")
