"""Publishing: routes, properties, confirms, returns, copies."""

from decimal import Decimal

from ..case import add, case
from ..form import Typed

ROUTES = {
    ("direct", "a.b"): ["a.b", "a.c", "", "A.B"],
    ("fanout", "a.b"): ["a.b", "a.c", ""],
    ("topic", "a.*.#"): ["a", "a.b", "a.b.c", "b.a", "a..", "", ".a.b", "a.b."],
    ("topic", "#"): ["", "a", "a.b"],
    ("topic", "*"): ["", "a", "a.b", "."],
    ("topic", "#.#"): ["", "a", "a.b.c"],
    ("topic", "a.#.b"): ["a.b", "a.x.b", "a.x.y.b", "a", "b", "a.b.c"],
    ("topic", "*.*"): ["a.b", "a", "a.", ".", "a.b.c"],
    ("topic", ""): ["", "a", "."],
    ("topic", "a.**"): ["a.b", "a.**", "a.b.c"],
}


def routes(kind: str, pattern: str, keys: list[str]):
    def script(t):
        t.exchange("~x", kind)
        t.queue("~q")
        t.bind("~q", "~x", pattern)
        for key in keys:
            t.publish("~x", key, f"by {key}")
        for _ in range(len(keys) + 1):
            if t.get("~q", no_ack=True) == 0:
                break
        t.counts("~q")

    return script


for (kind, pattern), keys in ROUTES.items():
    add(f"{kind} exchange: bound by {pattern!r}", routes(kind, pattern, keys))

HEADERS = {
    "all": {"x-match": "all", "a": 1, "b": "x"},
    "any": {"x-match": "any", "a": 1, "b": "x"},
    "nothing but x-match all": {"x-match": "all"},
    "nothing but x-match any": {"x-match": "any"},
    "no arguments": {},
    "no x-match": {"a": 1},
    "void": {"x-match": "all", "a": None},
    "x- names": {"x-match": "all", "x-a": 5, "a": 1},
    "all-with-x": {"x-match": "all-with-x", "x-a": 5, "a": 1},
    "any-with-x": {"x-match": "any-with-x", "x-a": 5, "a": 7},
    "a long": {"a": Typed("l", 1)},
    "a double": {"a": Typed("d", 1.0)},
    "a boolean": {"a": True},
    "a string of the number": {"a": "1"},
    "bytes": {"b": b"x"},
    "a table": {"c": {"d": 1}},
    "an array": {"c": [1, 2]},
}
SENT = [
    {}, {"a": 1}, {"b": "x"}, {"a": 1, "b": "x"}, {"a": "1"}, {"a": True}, {"a": Typed("d", 1.0)}, {"a": Typed("l", 1), "x-a": 6}, {"a": 1, "x-a": 5},
    {"x-a": 5}, {"c": {"d": 1}}, {"c": [1, 2]}, {"c": [2, 1]}, {"a": None}, {"b": b"x"}, {"a": Typed("s", 1), "b": "y"},
]  # fmt: skip


def matches(arguments: dict):
    def script(t):
        t.exchange("~x", "headers")
        t.queue("~q")
        t.bind("~q", "~x", "", arguments)
        for number, headers in enumerate(SENT):
            t.publish("~x", "", f"{number}", headers=headers)
        t.publish("~x", "", "without headers")
        for _ in range(len(SENT) + 1):
            t.get("~q", no_ack=True)

    return script


for what, arguments in HEADERS.items():
    add(f"headers exchange: {what}", matches(arguments))

PROPERTIES = {
    "none": {},
    "delivery mode 1": {"delivery_mode": 1},
    "delivery mode 2": {"delivery_mode": 2},
    "delivery mode 0": {"delivery_mode": 0},
    "delivery mode 3": {"delivery_mode": 3},
    "priority 255": {"priority": 255},
    "all strings": {"content_type": "a/b", "content_encoding": "gzip", "correlation_id": "c", "reply_to": "r", "message_id": "m", "type": "t", "app_id": "a", "cluster_id": "x"},
    "empty strings": {"content_type": "", "reply_to": "", "message_id": ""},
    "a timestamp": {"timestamp": 1234567890},
    "empty headers": {"headers": {}},
    "headers of every type": {
        "headers": {
            "b": Typed("b", -1), "B": Typed("B", 255), "s": Typed("s", -2), "u": Typed("u", 65535), "I": -3, "i": Typed("i", 4294967295),
            "l": Typed("l", -4), "f": Typed("f", 1.5), "d": Typed("d", 2.5), "t": True, "S": "ü", "x": b"\x00\xff", "T": Typed("T", 1), "D": Decimal("1.23"),
            "A": [1, "a", [True], {"n": None}], "F": {"inner": {"inner": {}}}, "V": None, "": "no name", "order": 1, "Order": 2,
        }
    },
    "the user's own id": {"user_id": "guest"},
    "another user's id": {"user_id": "bob"},
    "an empty user id": {"user_id": ""},
    "an x-death header of the client's": {"headers": {"x-death": [{"queue": "q", "reason": "rejected", "count": 7}], "x-first-death-queue": "q"}},
    "an x-death header that is a string": {"headers": {"x-death": "nonsense"}},
    "an x-delivery-count header": {"headers": {"x-delivery-count": 5}},
}  # fmt: skip


def carries(properties: dict):
    def script(t):
        t.queue("~q")
        t.publish("", "~q", "body", **properties)
        t.get("~q", no_ack=True)
        t.publish("", "~nowhere", "body", mandatory=True, **properties)
        t.returns(1)

    return script


for what, properties in PROPERTIES.items():
    add(f"properties: {what}", carries(properties))

EXPIRATIONS = ["60000", "0", "-1", "abc", "", "1.5", "5 ", " 5", "+5", "007", "315360000000", "315360000001", "99999999999999999999"]


def expires(expiration: str):
    def script(t):
        t.queue("~q")
        t.publish("", "~nowhere", expiration=expiration)
        t.sync()
        t.publish("", "~q", expiration=expiration)
        t.sync("~q")
        t.get("~q", no_ack=True)

    return script


for each in EXPIRATIONS:
    add(f"expiration {each!r}", expires(each))

BODIES = {"empty": 0, "one byte": 1, "a frame": 131064, "a frame and a byte": 131065, "three frames": 400000}
for what, size in BODIES.items():

    def bodies(t, size=size):
        t.queue("~q")
        t.publish("", "~q", b"x" * size)
        t.get("~q")
        t.publish("", "~nowhere", b"x" * size, mandatory=True)
        t.returns(1)

    add(f"body: {what}", bodies)


@case("confirms with mandatory messages, some of which nobody takes")
def _(t):
    t.queue("~q")
    t.confirm_select()
    for number, key in enumerate(["~q", "~nowhere", "~q", "~nowhere"]):
        t.publish("", key, f"{number}", mandatory=True)
    t.returns(2)
    t.confirms(4)
    t.counts("~q")


@case("confirms without mandatory, to nobody, one queue and two")
def _(t):
    t.queue("~q")
    t.queue("~p")
    t.exchange("~x", "fanout")
    t.bind("~q", "~x")
    t.bind("~p", "~x")
    t.confirm_select()
    t.publish("", "~nowhere")
    t.publish("", "~q", delivery_mode=2)
    t.publish("~x", "", delivery_mode=2)
    t.confirms(3)
    t.counts("~q")
    t.counts("~p")


@case("confirms count from the first publish after confirm.select")
def _(t):
    t.queue("~q")
    t.publish("", "~q")
    t.confirm_select()
    t.publish("", "~q")
    t.publish("", "~q")
    t.confirms(2)
    t.confirm_select()
    t.publish("", "~q")
    t.confirms(3)


@case("a message takes one copy to a queue that is bound thrice")
def _(t):
    t.exchange("~x", "topic")
    t.queue("~q")
    for key in ("a.*", "*.b", "#"):
        t.bind("~q", "~x", key)
    t.publish("~x", "a.b")
    t.counts("~q")
    t.sync("~q")
    t.get("~q")
    t.get("~q")


@case("exchanges bound in a circle")
def _(t):
    t.exchange("~x", "fanout")
    t.exchange("~y", "fanout")
    t.queue("~q")
    t.bind_exchange("~x", "~y")
    t.bind_exchange("~y", "~x")
    t.bind("~q", "~x")
    t.bind("~q", "~y")
    t.publish("~x", "k")
    t.get("~q")
    t.get("~q")


@case("an alternate exchange takes what nobody else does")
def _(t):
    t.exchange("~other", "fanout")
    t.exchange("~x", "direct", arguments={"alternate-exchange": "~other"})
    t.queue("~q")
    t.queue("~rest")
    t.bind("~q", "~x", "k")
    t.bind("~rest", "~other")
    t.confirm_select()
    t.publish("~x", "k", "bound")
    t.publish("~x", "nothing", "unbound", mandatory=True)
    t.confirms(2)
    t.get("~q")
    t.get("~q")
    t.get("~rest")
    t.get("~rest")


@case("alternate exchanges in a chain, in a circle, and missing")
def _(t):
    t.exchange("~x", "direct", arguments={"alternate-exchange": "~y"})
    t.publish("~x", "k", "missing alternate", mandatory=True)
    t.returns(1)
    t.exchange("~y", "direct", arguments={"alternate-exchange": "~x"})
    t.publish("~x", "k", "in a circle", mandatory=True)
    t.returns(1)
    t.queue("~q")
    t.bind("~q", "~y", "k")
    t.publish("~x", "k", "found", mandatory=True)
    t.get("~q")
    t.delete_exchange("~y")
    t.publish("~x", "k", "deleted alternate", mandatory=True)
    t.returns(1)


@case("an alternate exchange beside an exchange bound to nothing")
def _(t):
    t.exchange("~rest", "fanout")
    t.exchange("~x", "fanout", arguments={"alternate-exchange": "~rest"})
    t.exchange("~dead end", "fanout")
    t.bind_exchange("~dead end", "~x")
    t.queue("~q")
    t.bind("~q", "~rest")
    t.publish("~x", "k", mandatory=True)
    t.sync("~q")
    t.counts("~q")


@case("bindings with the same key and other arguments")
def _(t):
    t.queue("~q")
    t.exchange("~x")
    t.bind("~q", "~x", "k", {"a": 1})
    t.bind("~q", "~x", "k", {"a": 2})
    t.publish("~x", "k")
    t.sync("~q")
    t.counts("~q")
    t.unbind("~q", "~x", "k")
    t.unbind("~q", "~x", "k", {"a": 1})
    t.publish("~x", "k")
    t.sync("~q")
    t.counts("~q")
    t.unbind("~q", "~x", "k", {"a": 2})
    t.publish("~x", "k", mandatory=True)
    t.returns(1)


@case("an auto-delete exchange goes with its last binding")
def _(t):
    t.exchange("~x", "fanout", auto_delete=True)
    t.queue("~q")
    t.bind("~q", "~x")
    t.unbind("~q", "~x")
    t.exchange("~x", "fanout", auto_delete=True, passive=True)
    t.exchange("~x", "fanout", auto_delete=True)
    t.bind("~q", "~x")
    t.delete_queue("~q")
    t.exchange("~x", "fanout", passive=True)


@case("an auto-delete exchange that is bound to another")
def _(t):
    t.exchange("~x", "fanout", auto_delete=True)
    t.exchange("~y", "fanout", auto_delete=True)
    t.bind_exchange("~x", "~y")
    t.queue("~q")
    t.bind("~q", "~x")
    t.unbind("~q", "~x")
    t.exchange("~x", "fanout", passive=True)
    t.exchange("~y", "fanout", passive=True)


COPIES = {
    "CC to a queue": {"CC": ["~b"]},
    "BCC to a queue": {"BCC": ["~b"]},
    "CC and BCC": {"CC": ["~b"], "BCC": ["~c"]},
    "CC to itself": {"CC": ["~a"]},
    "CC twice": {"CC": ["~b", "~b"]},
    "CC to nobody": {"CC": ["~nobody"]},
    "an empty CC": {"CC": []},
    "an empty BCC": {"BCC": []},
    "CC with an empty key": {"CC": [""]},
    "CC that is a string": {"CC": "~b"},
    "BCC that is a string": {"BCC": "~b"},
    "CC that is a number": {"CC": 5},
    "CC that is a table": {"CC": {"a": 1}},
    "CC that is void": {"CC": None},
    "CC with numbers in it": {"CC": ["~b", 5]},
    "CC with nothing but numbers in it": {"CC": [5]},
    "CC with bytes in it": {"CC": [b"b"]},
    "BCC with numbers in it": {"BCC": ["~b", True]},
    "BCC with other headers": {"first": 1, "BCC": ["~b"], "last": "x"},
    "cc in small letters": {"cc": ["~b"]},
    "a bad CC and a bad BCC": {"BCC": 1, "CC": "x"},
    "a key that is too long": {"CC": ["k" * 256]},
}


def copies(headers: dict):
    def script(t):
        for name in ("~a", "~b", "~c"):
            t.queue(name)
        t.publish("", "~a", "body", mandatory=True, headers=headers)
        t.sync("~a")
        for name in ("~a", "~b", "~c"):
            t.get(name)
            t.get(name)

    return script


for what, headers in COPIES.items():
    add(f"copies: {what}", copies(headers))


@case("copies to the default exchange from nobody's key")
def _(t):
    t.queue("~b")
    t.confirm_select()
    t.publish("", "~nobody", "to CC only", mandatory=True, headers={"CC": ["~b"]})
    t.publish("", "~nobody", "to BCC only", mandatory=True, headers={"BCC": ["~b"]})
    t.publish("", "~nobody", "to nobody", mandatory=True, headers={"CC": ["~c"], "BCC": ["~d"]})
    t.returns(1)
    t.confirms(3)
    t.get("~b")
    t.get("~b")


@case("copies through topic, fanout and headers exchanges")
def _(t):
    t.queue("~a")
    t.queue("~b")
    for kind, key in (("topic", "a.#"), ("fanout", ""), ("headers", "")):
        t.exchange(f"~{kind}", kind)
        t.bind("~a", f"~{kind}", key, {"h": 1} if kind == "headers" else None)
        t.publish(f"~{kind}", "b.c", kind, headers={"CC": ["a.b", "a.c"], "h": 1})
        t.publish(f"~{kind}", "b.c", kind, headers={"BCC": ["a.b"]})
        t.get("~a", no_ack=True)
        t.get("~a", no_ack=True)
        t.get("~a", no_ack=True)


@case("copies through an exchange bound to an exchange, and an alternate one")
def _(t):
    t.exchange("~rest", "direct")
    t.exchange("~x", "direct", arguments={"alternate-exchange": "~rest"})
    t.exchange("~y", "direct")
    t.queue("~q")
    t.queue("~r")
    t.bind_exchange("~y", "~x", "b")
    t.bind("~q", "~y", "c")
    t.bind("~r", "~rest", "d")
    t.publish("~x", "a", "one", headers={"CC": ["b", "c"]})
    t.publish("~x", "a", "two", headers={"BCC": ["d"]})
    t.get("~q")
    t.get("~q")
    t.get("~r")
    t.get("~r")
