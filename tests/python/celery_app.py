"""The tasks that test_celery.py has a worker run. Nothing is set but where the broker is and where results go."""

import os

from celery import Celery

app = Celery("tasks", broker=os.environ["CELERY_URL"], backend="rpc://")


@app.task
def add(x, y):
    return x + y


@app.task(bind=True)
def stubborn(self, failures):
    """Fails so many times, and says how often it was tried."""
    if self.request.retries < failures:
        raise self.retry(countdown=1, max_retries=failures)
    return self.request.retries
