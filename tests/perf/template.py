"""Lines with holes: what PerfTest prints, so that numbers and names may differ and nothing else.

A template is a line with `{id}`, `{time}`, `{rate}`, `{six}`, `{date}`, `{n}` or `{any}` in it; the holes take exactly what PerfTest's
formats can give (a rate is `0`, `0.12`, `1.2` or a whole number). An interval's line stands in a list once, marked `many`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

HOLES = {
    "id": r"[^\s,]+",
    "time": r"\d+\.\d{3}",
    "rate": r"(?:0|0\.\d\d|1\.00|\d\.\d|10\.0|\d{2,})",
    "six": r"\d+(?:/\d+){5}",
    "five": r"\d+(?:/\d+){4}",
    "date": r"\d{4}/\d\d/\d\d \d\d:\d\d:\d\d",
    "n": r"\d+",
    "any": r".*",
}


@dataclass(frozen=True)
class Line:
    """A template; `many`: one line or more like it. `free`: blanks count as blanks, however many (columns). `maybe`: or none."""

    text: str
    many: bool = False
    free: bool = False
    maybe: bool = False

    def pattern(self) -> re.Pattern:
        parts = re.split(r"\{(\w+)\}", self.text)
        text = "".join(HOLES[part] if index % 2 else re.escape(part) for index, part in enumerate(parts))
        if self.free:
            text = re.sub(r"(?:\\ )+", r"\\s+", text)
        return re.compile(text)


def older(line: Line) -> Line:
    """The same line as PerfTest up to 2.22 prints it: no maximum, and seconds instead of the date in the compact format."""
    text = line.text.replace("/99th/max", "/99th").replace("{six}", "{five}").replace("{date}", "{time}s")
    columns = line.free or "{date}" in line.text or line.text.startswith("time ")
    return Line(text, line.many, columns, line.maybe)


def differences(lines: list[str], expected: list[Line], ours: tuple[Line, ...] = ()) -> list[str]:
    """What in a list of lines is not as expected. Lines like `ours` are skipped, where they are not expected."""
    at, faults = 0, []
    for line in lines:
        if at > 0 and expected[at - 1].many and expected[at - 1].pattern().fullmatch(line):
            continue
        ahead = at
        while ahead < len(expected) and expected[ahead].maybe and not expected[ahead].pattern().fullmatch(line):
            ahead += 1
        if ahead < len(expected) and expected[ahead].pattern().fullmatch(line):
            at = ahead + 1
            continue
        if any(own.pattern().fullmatch(line) for own in ours):
            continue
        wanted = expected[at].text if at < len(expected) else "no more lines"
        faults.append(f"expected: {wanted}")
        faults.append(f"got:      {line}")
        return faults
    return [f"missing:  {line.text}" for line in expected[at:] if not line.maybe]
