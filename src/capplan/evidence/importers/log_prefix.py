"""What stands before each line of a text, where something else has logged it: containers, nodes, times, an indentation.

`docker compose logs` and `kubectl logs --prefix` name the container, `--timestamps` and CI systems the time; mails and
issues indent or quote. All of it is left out before a file is recognised.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace

from capplan.errors import InputError
from capplan.evidence.text_file import TextFile

_NAME = r"(?P<name>\[[^\]\s]+\]|[\w.@/-]+:)(?: |$)"  # any: [name] or name:
_PREFIXES = (
    r"(?P<name>[\w.-]+) +\|(?: |$)",  # docker compose logs
    r"\[(?P<name>pod/[^\]\s]+)\](?: |$)",  # kubectl logs --prefix
    r"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \S+ (?P<name>\S+?)(?:\[\d+\])?:(?: |$)",  # journalctl
    # --timestamps, container runtimes, CI systems
    r"\[?(?:\d{4}-\d\d-\d\d[T ]|[A-Z][a-z]{2} [ \d]\d )?\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?\]?"
    r"(?: std(?:out|err) [FP])?(?: |$)",
    r"\S+ (?P<name>[\w./-]+)\[\d+\]:(?: |$)",  # journalctl, behind a time of another form
    _NAME,
    r">(?: |$)",  # a mail
    r"[ \t]+(?=\S)",  # an indentation, of the least depth
)
_MOST = 0.75  # of the lines: that a container starts and ends is said without a prefix
_RECURS = 3  # lines of each source in the mean, below which these are no sources


def without_prefix(file: TextFile, content: re.Pattern[str] | None = None) -> tuple[TextFile, tuple[str, ...]]:
    """Return a file that is read without what stands before its lines, and a remark unless that is an indentation.

    Parameters
    ----------
    file : TextFile
        The file.
    content : Pattern, optional
        How a line may begin that has nothing before it: times, too, may belong to it.

    Raises
    ------
    InputError
        If lines of several containers are mixed.
    """
    lines = [line for line in file.head.splitlines() if line.strip()]
    found, example = "", ""
    while len(lines) > 1 and not (content and any(map(content.match, lines))) and (pattern := _common(lines, file)):
        example = example or next(each[0] for line in lines if (each := re.match(pattern, line)))
        found += f"(?:{pattern})?"
        lines = [re.sub(f"^{pattern}", "", line) for line in lines]
    if not found:
        return file, ()
    shown = example.strip()
    return replace(file, prefix=found), (f"the prefix of each line is left out: {shown}",) if shown else ()


def _common(lines: list[str], file: TextFile) -> str:
    """Return the pattern of what begins nearly all lines; empty if nothing does."""
    for prefix in _PREFIXES:
        begun = [each for line in lines if (each := re.match(prefix, line))]
        if len(begun) < _MOST * len(lines) or all(each.end() == len(each.string) for each in begun):
            continue
        names = Counter(each["name"] for each in begun if "name" in each.groupdict())
        if len(names) > 1:
            if prefix == _NAME or min(names.values()) == 1 or len(names) > len(begun) / _RECURS:
                continue  # cells of a table, or keys of values
            raise InputError(
                f"{file.path} has lines of several sources ({', '.join(sorted(names)[:3])}): save those of the load "
                "generator alone, such as by `docker compose logs --no-log-prefix NAME`"
            )
        if prefix == _PREFIXES[-1]:
            return re.escape(min((each[0] for each in begun), key=len)) if len(begun) == len(lines) else ""
        return re.sub(r"\?P<name>", "?:", prefix)
    return ""
