"""What a program says of a configuration, without the values in it: its errors quote addresses and passwords."""

import json
import re
from collections.abc import Mapping, Sequence

#: Shorter ones are no secrets, and are part of any text.
SHORTEST = 4
#: Go's YAML reader quotes the first seven characters of what is longer than ten.
QUOTED, WHOLE = 7, 10


def leaves(place, value):
    """Each text or number in a value, with its place."""
    if isinstance(value, Mapping):
        for key, each in value.items():
            yield from leaves(f"{place}.{key}" if place else key, each)
    elif isinstance(value, Sequence) and not isinstance(value, str | bytes):
        for i, each in enumerate(value):
            yield from leaves(f"{place}[{i}]", each)
    elif value is not None and not isinstance(value, bool):
        yield place, str(value)


def hide_values(text, variables):
    """The text with each value of the variables replaced by <its place>; names of receivers are no secrets."""
    places = {}
    for place, value in leaves("", variables):
        if len(value) >= SHORTEST and not place.endswith("].name"):
            places.setdefault(value, place)
            places.setdefault(json.dumps(value, ensure_ascii=False)[1:-1], place)
            if len(value) > WHOLE:
                places.setdefault(f"{value[:QUOTED]}...", place)
    if not places:
        return text
    longest_first = sorted(places, key=len, reverse=True)
    return re.sub("|".join(map(re.escape, longest_first)), lambda found: f"<{places[found.group()]}>", text)


class FilterModule:
    """As Ansible finds it."""

    def filters(self):
        return {"hide_values": hide_values}
