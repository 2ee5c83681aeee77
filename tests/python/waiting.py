"""Waiting for what comes in a moment: asking again and again, with an end to it."""

import time


def until(look, wanted=bool, patience=15.0, pause=0.02, what="it did not happen"):
    """What `look` finds once `wanted` says yes to it; fails after `patience` seconds."""
    end = time.monotonic() + patience
    while not wanted(found := look()):
        assert time.monotonic() < end, f"{what}: {found!r}"
        time.sleep(pause)
    return found
