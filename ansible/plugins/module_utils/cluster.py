"""Nodes and slots of a cluster, as CLUSTER NODES and nodes.conf have them."""

SLOTS = 16384
#: Flags of a node that another one does not know yet, or not where it is.
UNMET = {"handshake", "noaddr"}


def slots_in(text):
    """The slots of `0-5460,5462`, as a set. @raises ValueError where it is no such text"""
    found = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        first, last = int(first), int(last or first)
        if not 0 <= first <= last < SLOTS:
            raise ValueError("%s is no range of slots from 0 to %d" % (part, SLOTS - 1))
        found.update(range(first, last + 1))
    return found


def ranges_of(slots):
    """As `0-5460,5462`; the other way round."""
    parts = []
    for slot in sorted(slots):
        if parts and parts[-1][1] == slot - 1:
            parts[-1][1] = slot
        else:
            parts.append([slot, slot])
    return ",".join("%d-%d" % (first, last) if first < last else str(first) for first, last in parts)


class Node:
    """One line: a node as another one, or itself, sees it."""

    def __init__(self, line):
        words = line.split()
        self.id, self.flags = words[0], set(words[2].split(","))
        self.address = words[1].partition("@")[0]
        #: The ID of its master; None for a master.
        self.master = None if words[3] == "-" else words[3]
        self.epoch = int(words[6])
        self.slots = slots_in(",".join(word for word in words[8:] if not word.startswith("[")))


def nodes_in(text):
    """Those that are met already. The line `vars` of nodes.conf is none."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("vars ")]
    return [node for node in map(Node, lines) if not node.flags & UNMET]
