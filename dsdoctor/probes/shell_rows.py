"""The logical lines of a shell script: continuations, quotes over several lines, heredocs."""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterator

from dsdoctor.probes.python_launches import started_commands
from dsdoctor.probes.shell_functions import Rows
from dsdoctor.probes.shell_words import SHELL, simple_commands

_HEREDOC = re.compile(r"(?<!<)<<-?\s*(['\"]?)(\w+)\1")
#: Arithmetic, in which `<<` shifts: `$(( (RANDOM<<15) | 1 ))`, `((N << 1))`.
_ARITHMETIC = re.compile(r"\(\((?:[^()\n]|\((?:[^()\n]|\([^()\n]*\))*\))*\)\)")
_SHEBANG = re.compile(r"#!.{0,80}sh\b")
#: A file of commands that a heredoc is written to.
_SCRIPT_WRITTEN = re.compile(r"(?:>|\btee\b)[^|;&]*\.(?:sh|bash|sbatch|slurm|job|pbs|lsf|bsub)\b")
_PIPED = re.compile(
    r"[^|;&]*\|\s*(?:ssh\s[^|;&]{1,200}|(?:\S{1,80}/)?(?:ba|z|da|k)?sh)\s*(?:$|[|;&-])"
)
#: Programs that run the commands of their standard input, besides shells.
_READERS = frozenset({"ssh", "sbatch", "qsub"})
#: The words of a command that reads a heredoc.
_READ = re.compile(
    r"\s*(?:IFS=\S{0,10}\s+)?read(?=\s[^<]*-\w*d\s*(?:''|\"\"))(?:\s+-\w+|\s+(?:''|\"\"))+"
    r"\s+(?P<name>[A-Za-z_]\w*)\s*<<"
)
#: Python that runs its standard input.
_PYTHON_READS = re.compile(r"(?:^|[\s/;&|])python[\d.]*(?:\s+-[uBEIsS]+)*(?:\s+-)?\s*$")
#: A quote spans at most this many lines; otherwise it is a stray one.
_QUOTED_LINES = 400
#: How many heredocs in heredocs are read.
_DEEPEST = 3
#: Characters of one script that may be read again after an open quote. Each line of a script may
#: require all that follows it.
_MOST_READ_AGAIN = 2 << 20


def logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines joined with their continuations and with the lines that a quote spans.

    Comment lines and heredocs are left out, except those that `read -d ''` reads (an assignment),
    that a shell reads, or that become a script; of those that Python reads, the commands that it
    starts. A quote that is not closed soon ends with its line.
    """
    yield from _logical(list(_continued(text)), _DEEPEST)


def _logical(rows: Rows, deep: int) -> Iterator[tuple[int, str]]:
    place, until, taken, left = 0, "", "", _MOST_READ_AGAIN
    runs = python = False
    begun_at = 0
    held: Rows = []
    ends = {line.strip() for _, line in rows}
    while place < len(rows):
        begun, line = rows[place]
        place += 1
        if until and line.strip() != until:
            held.append((begun, line))
            continue
        if until:
            if taken:
                yield begun, f"{taken}={shlex.quote(' '.join(row for _, row in held))}"
            elif python:
                source = "\n".join(text for _, text in held)
                yield from ((begun_at + row, text) for row, text in started_commands(source))
            elif deep and (runs or _SHEBANG.match(held[0][1] if held else "")):
                yield from _logical(
                    [(row, text.replace(r"\$", "$")) for row, text in held], deep - 1
                )
            until, held = "", []
            continue
        if line.lstrip().startswith("#"):
            continue
        quote, end = _open_quote(line), place
        while quote and end < min(len(rows), place + _QUOTED_LINES) and left > 0:
            quote = _open_quote(rows[end][1], quote)
            left -= len(rows[end][1]) + 1
            end += 1
        if end > place and not quote:
            line = "\n".join([line, *(row for _, row in rows[place:end])])
            place = end
        elif (found := _heredoc(line)) and found[2] in ends:
            until = found[2]
            name = _READ.match(line)
            taken = name["name"] if name else ""
            runs = _reads_script(line, found)
            python, begun_at = bool(_PYTHON_READS.search(line[: found.start()])), begun
        yield begun, line


def _heredoc(line: str) -> re.Match[str] | None:
    """The beginning of a heredoc in a line.

    >>> _heredoc("P=$(( ((RANDOM<<15)|RANDOM) % 9 ))"), _heredoc("read A <<< EOF")
    (None, None)
    >>> _heredoc("cat <<-'END' > a")[2]
    'END'
    """
    if "<<" not in line:
        return None
    if "((" in line:
        line = _ARITHMETIC.sub(lambda found: found[0].replace("<", " "), line)
    return _HEREDOC.search(line)


def _reads_script(line: str, heredoc: re.Match[str]) -> bool:
    """Whether what reads a heredoc is a shell, on this node or another, or writes a script.

    >>> line = "cat > job.sh <<EOF"
    >>> _reads_script(line, _HEREDOC.search(line))
    True
    """
    after = line[heredoc.end() :]
    if _SCRIPT_WRITTEN.search(f"{line[: heredoc.start()]} {after}") or _PIPED.match(after):
        return True
    read = [words for _, words in simple_commands(line[: heredoc.start()])][-1:]
    return any(posixpath.basename(word) in _READERS or SHELL.fullmatch(posixpath.basename(word))
               for words in read for word in words)  # fmt: skip


def _continued(text: str) -> Iterator[tuple[int, str]]:
    """Lines joined if they end with a backslash, each with the number of its first line."""
    begun, held = 0, ""
    for number, raw in enumerate(text.splitlines(), 1):
        begun = begun if held else number
        comment = not held and raw.lstrip().startswith("#")
        if raw.endswith("\\") and not raw.endswith("\\\\") and not comment:
            held += raw[:-1] + " "
            continue
        yield begun, held + raw
        held = ""
    if held:
        yield begun, held


def _open_quote(line: str, quote: str = "") -> str:
    r"""The quote that is open at the end of a line; "" if there is none.

    >>> _open_quote("bash -c 'torchrun"), _open_quote("it\\'s # don't"), _open_quote("x'", "'")
    ("'", '', '')
    """
    if not (quote and quote in line) and "'" not in line and '"' not in line:
        return quote
    place = 0
    while place < len(line):
        letter = line[place]
        if letter == "\\" and quote != "'":
            place += 1
        elif quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        elif letter == "#" and (place == 0 or line[place - 1].isspace()):
            break
        place += 1
    return quote
