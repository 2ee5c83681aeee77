"""What of an answer counts: status, exit code, JSON by its fields and types, text without what belongs to a run."""

from __future__ import annotations

import re

# Members whose values are compared, because the series decides them; of all others the type counts.
EXACT = {
    "active",
    "ack_required",
    "apply-to",
    "arguments",
    "auto_delete",
    "configure",
    "consumer_tag",
    "definition",
    "default_queue_type",
    "description",
    "destination",
    "destination_type",
    "durable",
    "error",
    "exclusive",
    "exchange",
    "filtered_count",
    "item_count",
    "internal",
    "limits",
    "name",
    "page",
    "page_count",
    "page_size",
    "pattern",
    "payload",
    "payload_bytes",
    "payload_encoding",
    "policy",
    "prefetch_count",
    "priority",
    "protected_from_deletion",
    "read",
    "reason",
    "redelivered",
    "routed",
    "routing_key",
    "source",
    "status",
    "tags",
    "total_count",
    "type",
    "user",
    "value",
    "vhost",
    "write",
}
# Members that are there while nothing happens, which is a matter of seconds.
PASSING = {"idle_since"}
# Members that have keys of their own choice.
OPAQUE = {"applications", "cluster_state", "client_properties", "backing_queue_status", "socket_opts", "memory"}

REPLACED = [
    (re.compile(r"[A-Za-z0-9_-]+@[A-Za-z0-9_.-]+"), "NODE"),
    (re.compile(r"\b\d+\.\d+\.\d+(-\w+)?\b"), "VERSION"),
    (re.compile(r"[A-Za-z0-9+/]{40,}={0,2}"), "HASH"),
    (re.compile(r"127VERSION|127\.0\.0\.1"), "HOST"),
    (re.compile(r"HOST:\d+"), "HOST:PORT"),
]


def plain(text: str, places: dict[str, str]) -> str:
    """Text without names, versions, ports and folders of a run."""
    for found, name in places.items():
        text = re.sub(rf"(?<![\w/]){re.escape(found)}(?!\d)", name, text)
    text = text.replace("127.0.0.1", "HOST")
    for pattern, name in REPLACED:
        text = pattern.sub(name, text)
    return text


def shape(value, places: dict[str, str], path: str = "", key: str = "") -> dict[str, list]:
    """The fields of a JSON document: paths with their types, or their values where the series decides these."""
    found: dict[str, list] = {}

    def add(more: dict[str, list]) -> None:
        for where, what in more.items():
            known = found.setdefault(where, [])
            known.extend(each for each in what if each not in known)

    if isinstance(value, dict) and key in EXACT:
        add({path: [stable(value)]})
    elif key in OPAQUE and isinstance(value, dict | list):
        add({path: ["object" if isinstance(value, dict) else "list"]})
    elif isinstance(value, dict):
        add({path: ["object"]})
        for name, member in value.items():
            known = plain(name, places)
            add(shape(member, places, f"{path}.{known}" if path else known, name))
    elif isinstance(value, list) and key in EXACT:
        add({path: [stable(value)]})
    elif isinstance(value, list):
        add({path: ["list"]})
        for member in value:
            add(shape(member, places, f"{path}[]", key if not isinstance(member, dict) else ""))
    elif key in EXACT or not path:
        add({path: [plain(value, places) if isinstance(value, str) else value]})
    else:
        add({path: [kind(value)]})
    return {where: sorted(what, key=str) for where, what in sorted(found.items())}


def stable(value) -> str:
    """JSON with its keys in order."""
    import json

    return json.dumps(value, sort_keys=True)


def kind(value) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return "number"
    return "null" if value is None else "text"


def lasting(found: dict[str, list]) -> dict[str, list]:
    """Without members that come and go by themselves."""
    return {where: what for where, what in found.items() if where.rpartition(".")[2] not in PASSING}


def differences(theirs: dict[str, list], ours: dict[str, list]) -> list[str]:
    """What of one shape is not so in the other, a line each. What a missing object would have had goes without saying."""
    theirs, ours = lasting(theirs), lasting(ours)
    lines = []
    lacking = [path for path in theirs if path not in ours]
    extra = [path for path in ours if path not in theirs]
    for path in lacking:
        if not below(path, lacking):
            lines.append(f"lacks {path}")
    for path in extra:
        if not below(path, extra):
            lines.append(f"has {path}")
    for path in sorted(set(theirs) & set(ours)):
        if theirs[path] != ours[path]:
            lines.append(f"{path or 'the answer'}: {show(ours[path])} instead of {show(theirs[path])}")
    return lines


def below(path: str, others: list[str]) -> bool:
    return any(path != other and other and (path.startswith(f"{other}.") or path.startswith(f"{other}[")) for other in others)


def show(values: list) -> str:
    return " or ".join(str(value) for value in values) or "nothing"
