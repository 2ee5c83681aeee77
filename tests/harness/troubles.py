"""What goes wrong in a cluster while it is used: each kind has a beginning and an end, and two of different kinds may overlap."""

from __future__ import annotations

import itertools
import random
import threading
import time

from .cluster import name
from .link import Api
from .queue_users import mirror, wait_for_mirrors
from .shim import Shim
from .users import ANSWERS_WITHIN_SECONDS, SERVES_WITHIN_SECONDS, Users

# Only a test that would never end is ended by this.
WAY_FOUND_WITHIN_SECONDS = 10
CLOCK_JUMPS_MS = (2_500, 60_000, 7_200_000, 86_400_000)
SYNC_MS = (20, 100, 500, 2_000)
# The log of a node has room for this long; then it has no next file.
FULL_WITHIN_SECONDS = 6
FULL = "has no next file: the disk is full"


class Trouble:
    """One thing that goes wrong. `struck` are nodes that another trouble has stopped already: they are not stopped twice."""

    # How long it lasts, in seconds: shorter and longer than it takes to be noticed.
    SECONDS = (0.1, 0.6, 1.5, 3.0)
    # Whether nodes hear nothing of each other meanwhile.
    PARTS = True
    LEAST_NODES = 3
    NEEDS_SHIM = False

    def __init__(self, users: Users, shim: Shim | None, dice: random.Random, struck: set[int], alone: bool):
        self.users, self.cluster, self.shim, self.dice, self.struck, self.alone = users, users.cluster, shim, dice, struck, alone
        self.seconds = dice.choice(self.SECONDS)
        order = list(users.nodes)
        dice.shuffle(order)
        self.order = order

    def begin(self) -> None:
        raise NotImplementedError

    def endure(self) -> None:
        """What there is to look at before the end."""

    def end(self) -> None:
        raise NotImplementedError

    def tidy(self) -> None:
        """What is left to do when everybody is well again."""

    def some(self, counts: tuple[int, ...]) -> list[int]:
        """So many nodes as one of the numbers says, of those that run; one at least."""
        chosen = [node for node in self.order if node not in self.struck][: self.dice.choice(counts)]
        self.struck.update(chosen)
        return chosen


class Kill(Trouble):
    def begin(self) -> None:
        # What is confirmed is on the disks of a majority, so replicated queues survive it if all are killed.
        counts = (1, 1, 1, 1, 2, len(self.order)) if self.users.replicated else (1,)
        self.killed = self.some(counts if self.alone else (1,))
        for node in self.killed:
            self.cluster.nodes[node].kill()

    def end(self) -> None:
        for node in self.killed:
            self.cluster.nodes[node].spawn()


class PowerCut(Kill):
    """What was written for a moment before and not synced is gone, or a part of it."""

    NEEDS_SHIM = True

    def begin(self) -> None:
        self.killed = self.some((1, 1, 2, len(self.order)) if self.alone else (1,))
        for node in self.killed:
            self.shim.take_notes(node)
        time.sleep(0.3 + self.dice.random() * 1.5)
        for node in self.killed:
            self.cluster.nodes[node].process.kill()
        for node in self.killed:
            self.cluster.nodes[node].kill()
            taken = self.shim.cut_power(node, self.cluster.nodes[node].data, self.dice)
            with self.users.lock:
                self.users.reasons["bytes that power cuts took"] += taken


class Pause(Trouble):
    def begin(self) -> None:
        self.paused = self.some((1,) if len(self.order) == 3 else (1, 2))
        for node in self.paused:
            self.cluster.pause(node)

    def end(self) -> None:
        self.cluster.resume()


class Cut(Trouble):
    """Bytes stay away, in the directions that `directions` gives."""

    def begin(self) -> None:
        self.closed = self.directions()
        for source, target in self.closed:
            self.cluster.gates.cut(source, target)

    def end(self) -> None:
        for source, target in self.closed:
            self.cluster.gates.mend(source, target)

    def directions(self) -> list[tuple[int, int]]:
        raise NotImplementedError

    def between(self, *sides: list[int]) -> list[tuple[int, int]]:
        """Both directions between nodes that are not on the same side."""
        return [pair for one, other in itertools.permutations(sides, 2) for pair in itertools.product(one, other)]


class CutOff(Cut):
    def directions(self) -> list[tuple[int, int]]:
        return self.between(self.order[:1], self.order[1:])


class LinkCut(Cut):
    def directions(self) -> list[tuple[int, int]]:
        return self.between(self.order[:1], self.order[1:2])


class OneWay(Cut):
    """A node does not hear another one, or nobody hears it, or it hears nobody."""

    def directions(self) -> list[tuple[int, int]]:
        one, *others = self.order
        return self.dice.choice(([(one, others[0])], [(one, other) for other in others], [(other, one) for other in others]))


class Split(Cut):
    """A majority and a minority of more than one."""

    LEAST_NODES = 5

    def directions(self) -> list[tuple[int, int]]:
        return self.between(self.order[:2], self.order[2:])


class Scattered(Cut):
    """Nobody has a majority for a while."""

    SECONDS = (0.6, 1.5, 3.0, 6.0)

    def directions(self) -> list[tuple[int, int]]:
        pieces = [[node] for node in self.order] if len(self.order) == 3 or self.dice.random() < 0.3 else [self.order[:2], self.order[2:4], self.order[4:]]
        return self.between(*pieces)


class Bridge(Cut):
    """Two halves reach each other through one node only, for so long that they serve every queue meanwhile."""

    def directions(self) -> list[tuple[int, int]]:
        half = len(self.order) // 2
        return self.between(self.order[:half], self.order[half : 2 * half])

    def endure(self) -> None:
        if not self.alone:
            return
        self.look_for_ways()
        for end in sorted({source for source, _ in self.closed}):
            self.users.serve_all(end, "without a link")
            self.users.consume_all(end)

    def look_for_ways(self) -> None:
        """Each node says through which one it reaches those it has no link to. Quorum queues may have served everybody before they noticed
        that they have none."""
        reached = {node: [other for other in self.order if other != node and (node, other) not in self.closed] for node in self.order}
        deadline = time.monotonic() + WAY_FOUND_WITHIN_SECONDS
        for node in self.order:
            wanted = {name(other): [None] if other in reached[node] else [name(third) for third in reached[node] if other in reached[third]] for other in self.order if other != node}
            while not (is_so := self.matches(ways := self.ways(node), wanted)) and time.monotonic() < deadline:
                time.sleep(0.05)
            if not is_so:
                self.users.surprises.append(f"{name(node)} reaches the others through {ways}, not {wanted}")

    @staticmethod
    def matches(ways: dict[str, str | None], wanted: dict[str, list[str | None]]) -> bool:
        return ways.keys() == wanted.keys() and all(way in wanted[other] for other, way in ways.items())

    def ways(self, node: int) -> dict[str, str | None]:
        answer = Api(root=f"http://127.0.0.1:{self.cluster.nodes[node].http_port}").get(f"/nodes/{name(node)}")
        return {link["name"]: link["through"] for link in answer.json["cluster_links"]}


class Ring(Bridge):
    """Each node reaches two neighbours, and finds the ways to all others through them."""

    LEAST_NODES = 5

    def endure(self) -> None:
        if self.alone:
            self.look_for_ways()

    def directions(self) -> list[tuple[int, int]]:
        places = range(len(self.order))
        return [(self.order[one], self.order[other]) for one, other in itertools.permutations(places, 2) if (one - other) % len(places) not in (1, len(places) - 1)]


class OfTheSystem(Trouble):
    """A system fails one node, or all of them."""

    PARTS = False
    NEEDS_SHIM = True

    def begin(self) -> None:
        self.failed = self.order[: self.dice.choice((1, 1, 1, len(self.order)))]


class SlowDisk(OfTheSystem):
    SECONDS = (0.6, 1.5, 3.0, 5.0)

    def begin(self) -> None:
        super().begin()
        for node in self.failed:
            self.shim.slow(node, self.dice.choice(SYNC_MS))

    def end(self) -> None:
        for node in self.failed:
            self.shim.slow(node, 0)


class FullDisk(OfTheSystem):
    """No file gets a name or becomes longer. With luck the log comes to the end of its file meanwhile."""

    def begin(self) -> None:
        super().begin()
        self.told = {node: self.count_told(node) for node in self.failed}
        for node in self.failed:
            self.shim.full(node, True)

    def count_told(self, node: int) -> int:
        return self.cluster.nodes[node].log_text().count(FULL)

    def endure(self) -> None:
        if not self.alone:
            return
        deadline = time.monotonic() + FULL_WITHIN_SECONDS
        while time.monotonic() < deadline and not any(self.count_told(node) > told for node, told in self.told.items()):
            time.sleep(0.1)
        time.sleep(self.seconds)

    def end(self) -> None:
        for node in self.failed:
            self.shim.full(node, False)


class ClockJump(OfTheSystem):
    """Somebody sets the clock, and at the end he sets it right."""

    def begin(self) -> None:
        super().begin()
        for node in self.failed:
            self.shim.clock(node, self.dice.choice(CLOCK_JUMPS_MS) * self.dice.choice((1, -1)))

    def end(self) -> None:
        for node in self.failed:
            self.shim.clock(node, 0)


class Orders(Trouble):
    """Somebody gives orders about queues over HTTP, through any node that runs, as long as it lasts."""

    PARTS = False
    SECONDS = (0.6, 1.5, 3.0)

    def begin(self) -> None:
        self.is_over = threading.Event()
        self.giver = threading.Thread(target=self.give, daemon=True)
        self.giver.start()

    def give(self) -> None:
        while not self.is_over.is_set():
            node = self.dice.choice([node for node in self.order if node not in self.struck] or self.order)
            try:
                answers = self.order_something(node, self.dice.choice(self.users.queues))
            except OSError:
                answers = ["no answer"]
            except ValueError as error:
                self.users.surprises.append(f"an answer of {name(node)}: {error}")
                return
            with self.users.lock:
                self.users.reasons.update(answers)
            self.is_over.wait(self.dice.random() * 0.5)

    def end(self) -> None:
        self.is_over.set()
        self.giver.join()

    def order_something(self, node: int, queue: str) -> list[str]:
        """What was answered."""
        raise NotImplementedError

    def ask(self, node: int, verb: str, path: str, body: dict | None = None):
        return Api(root=f"http://127.0.0.1:{self.cluster.nodes[node].http_port}", timeout=ANSWERS_WITHIN_SECONDS)(verb, f"/api{path}", body)

    def members(self, node: int, queue: str) -> list[str]:
        answer = self.ask(node, "GET", f"/queues/%2F/{queue}")
        if answer.status != 200:
            return []
        told = answer.json
        return told["members"] if "members" in told else [told["node"], *told.get("slave_nodes", [])]


class Membership(Orders):
    """A queue has one member less or more than before, and then another one has."""

    WAITS = True

    def order_something(self, node: int, queue: str) -> list[str]:
        members = self.members(node, queue)
        others = [name(other) for other in self.order if name(other) not in members]
        if not members:
            return ["no members"]
        # Not so few that one that is killed takes the majority along, if there are enough.
        if others and (len(members) < 3 or self.dice.random() < 0.5):
            answer = self.add(node, queue, self.dice.choice(others))
        else:
            answer = self.delete(node, queue, self.dice.choice(members))
        while self.WAITS and not self.is_over.is_set() and not self.is_settled(node, queue):
            self.is_over.wait(0.05)
        return [answer]

    def add(self, node: int, queue: str, member: str) -> str:
        return f"add {self.ask(node, 'POST', f'/queues/quorum/%2F/{queue}/replicas/add', {'node': member}).status}"

    def delete(self, node: int, queue: str, member: str) -> str:
        return f"delete {self.ask(node, 'DELETE', f'/queues/quorum/%2F/{queue}/replicas/delete', {'node': member}).status}"

    def members_told(self, node: int, queue: str):
        """What a node answers of the members and of how they stand."""
        return self.ask(node, "GET", f"/queues/quorum/%2F/{queue}/status")

    def voters(self, node: int, queue: str) -> list[str]:
        answer = self.members_told(node, queue)
        return [row["Node Name"] for row in answer.json if row.get("Membership") == "voter"] if answer.status == 200 else []

    def is_settled(self, node: int, queue: str) -> bool:
        """Whether the members are those that there are to be, and all of them vote."""
        return sorted(self.voters(node, queue)) == sorted(self.members(node, queue)) != []

    def tidy(self) -> None:
        """Each queue has as many members as at first."""
        deadline = time.monotonic() + SERVES_WITHIN_SECONDS
        for queue in self.users.queues:
            while not self.is_restored(queue):
                if time.monotonic() > deadline:
                    raise RuntimeError(f"{queue} does not get its members back: {self.members_told(self.order[0], queue).text}")
                time.sleep(0.05)

    def is_restored(self, queue: str) -> bool:
        """Whether there is nothing to be done; if there is, it is begun."""
        node, wanted = self.order[0], self.users.members(queue)
        try:
            if not self.is_settled(node, queue):
                return False
            members = self.members(node, queue)
            if len(members) < wanted:
                self.add(node, queue, next(name(other) for other in self.order if name(other) not in members))
            elif len(members) > wanted:
                self.delete(node, queue, members[-1])
            return len(members) == wanted
        except OSError:
            return False


class HastyMembership(Membership):
    """The same by somebody who does not wait until a change is made."""

    WAITS = False


class Copies(Membership):
    """The same with streams, of which a copy is one that counts once it has everything."""

    def __init__(self, users: Users, shim: Shim | None, dice: random.Random, struck: set[int], alone: bool):
        super().__init__(users, shim, dice, struck, alone)
        # How far each stream went at least when its members were changed.
        self.ends: dict[str, int] = {}

    def add(self, node: int, queue: str, member: str) -> str:
        return self.change("POST", node, queue, member)

    def delete(self, node: int, queue: str, member: str) -> str:
        return self.change("DELETE", node, queue, member)

    def change(self, verb: str, node: int, queue: str, member: str) -> str:
        self.ends[queue] = max((row["committed_offset"] for row in self.copies(node, queue)), default=0)
        return f"replica {verb} {self.ask(node, verb, f'/leveret/streams/%2F/{queue}/replicas', {'node': member}).status}"

    def members_told(self, node: int, queue: str):
        return self.ask(node, "GET", f"/leveret/streams/%2F/{queue}/replicas")

    def copies(self, node: int, queue: str) -> list[dict]:
        answer = self.members_told(node, queue)
        return answer.json if answer.status == 200 else []

    def voters(self, node: int, queue: str) -> list[str]:
        return [row["node"] for row in self.copies(node, queue) if row["committed_offset"] >= self.ends.get(queue, 0)]


class Leader(Orders):
    """Another member is to lead a queue, or leaders are spread."""

    def order_something(self, node: int, queue: str) -> list[str]:
        if self.dice.random() < 0.2:
            return [f"rebalance {self.ask(node, 'POST', '/rebalance/queues', {}).status}"]
        members = self.members(node, queue)
        if not members:
            return ["no members"]
        return [f"transfer {self.ask(node, 'POST', f'/leveret/queues/%2F/{queue}/leader', {'node': self.dice.choice(members)}).status}"]


class Policy(Orders):
    """Another policy says which nodes are to have the classic queues, or none does."""

    def order_something(self, node: int, queue: str) -> list[str]:
        size = len(self.order)
        ways = [
            {"ha-mode": "all"},
            {"ha-mode": "exactly", "ha-params": self.dice.randrange(2, size + 1)},
            {"ha-mode": "nodes", "ha-params": [name(other) for other in self.dice.sample(self.order, 3)]},
        ]
        # A queue without mirrors has what a node takes along that is killed.
        definition = self.dice.choice(ways + [None] * 2 if self.alone else ways)
        status = mirror(self.cluster, node, definition)
        return [f"policy {(definition or {}).get('ha-mode')} {status}"]

    def tidy(self) -> None:
        mirror(self.cluster, self.order[0], {"ha-mode": "all"})
        for queue in self.users.queues:
            wait_for_mirrors(self.cluster, self.order[0], queue, len(self.order) - 1)


class Conversion(Orders):
    """A queue is to be one of the other type, or of the one that it is."""

    def order_something(self, node: int, queue: str) -> list[str]:
        kind = self.dice.choice(["quorum", "classic"])
        return [f"convert {kind} {self.convert(node, queue, kind).status}"]

    def convert(self, node: int, queue: str, kind: str):
        return self.ask(node, "POST", f"/leveret/queues/%2F/{queue}/convert", {"type": kind})

    def tidy(self) -> None:
        """All are mirrored ones again."""
        deadline = time.monotonic() + SERVES_WITHIN_SECONDS
        for queue in self.users.queues:
            while not ((answer := self.convert(self.order[0], queue, "classic")).status == 200 and answer.json["in_place"]):
                if time.monotonic() > deadline:
                    raise RuntimeError(f"{queue} is not converted back: {answer.text}")
                time.sleep(0.05)


OF_ALL_QUEUES = {"kill -9": Kill, "pause": Pause, "cut off": CutOff, "link cut": LinkCut, "one way": OneWay, "bridge": Bridge}
KINDS = OF_ALL_QUEUES | {
    "power cut": PowerCut,
    "split": Split,
    "ring": Ring,
    "scattered": Scattered,
    "slow disk": SlowDisk,
    "full disk": FullDisk,
    "clock jump": ClockJump,
    "membership": Membership,
    "hasty membership": HastyMembership,
    "copies": Copies,
    "leader": Leader,
    "policy": Policy,
    "conversion": Conversion,
}
OF_ONE_KIND = {"membership": "quorum", "hasty membership": "quorum", "copies": "stream", "policy": "mirrored", "conversion": "mirrored"}
