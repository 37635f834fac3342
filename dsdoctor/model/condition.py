"""The units a contributor writes: conditions, limits, signatures."""

from __future__ import annotations

import enum
from collections import defaultdict
from collections.abc import Mapping

import msgspec

from dsdoctor.model.facts.base import Fact
from dsdoctor.model.facts.run import Scope
from dsdoctor.model.observation import Observation


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Base of a check's thresholds: numeric fields whose names end in their unit.

    A check that takes a parameter of a Limits subclass gets the defaults, overridden by the
    `[limits.CONDITION]` table of the configuration.
    """


class Condition(msgspec.Struct, frozen=True):
    """A problem with a name: checks predict it, signatures recognize it, and fixes resolve it.

    Attributes:
        name: kebab-case, says what the problem is, never the fix.
        id: `DSDnnn` or `DSDnnnn`; hundreds by family, never re-used.
        scope: who can fix it.
        since: first version of dsdoctor that has it.
        fixes: names of fixes that may solve it.
        leads_to: conditions seen afterwards when this one was predicted.
        narrower: conditions that explain the same problem more precisely; if one of them is found,
            only that one is reported.
        blinds: facts that cannot be read while this condition fails; checks that need them are
            skipped then, with this condition as the reason.
        formerly: earlier names, which options and configurations may still use.
        transient: why starting the job again may help without any change; "" = it
            cannot. `dsdoctor run --restarts` acts on it.
        names: what dsdoctor observes of a run on its own and reports as this condition.
    """

    name: str
    id: str
    scope: Scope
    since: str
    fixes: tuple[str, ...] = ()
    leads_to: tuple[str, ...] = ()
    narrower: tuple[str, ...] = ()
    blinds: tuple[type[Fact], ...] = ()
    formerly: tuple[str, ...] = ()
    transient: str = ""
    names: tuple[Observation, ...] = ()


class Level(enum.IntEnum):
    """How certain it is that a message means its condition.

    Of the causes found in a log, the one of the highest level is listed first; among equals, the
    one that came first.
    """

    HINT = 1
    """A consequence that many causes have; named only where nothing else is found."""
    WEAK = 2
    """Fits the condition, and others too."""
    LIKELY = 3
    """Mostly the condition; a different cause is known."""
    STRONG = 4
    """The product raises it for this reason alone, or the context shows the reason."""
    CERTAIN = 5
    """The message states the cause itself, and nothing before it can be deeper."""


class Signature(msgspec.Struct, frozen=True, omit_defaults=True):
    """One message of a product, as it appears in a log.

    The literal text that a log is searched for, before the pattern is tried, is derived from the
    pattern (`dsdoctor.logs.necessary`).

    Attributes:
        pattern: regular expression, searched in the line (case-sensitive unless it says `(?i)`).
        examples: lines that must match; each alternative of the pattern occurs in one of them.
        not_examples: near-misses: lines with the literal that must not match. Empty only where
            the literal alone matches.
        source: product, releases and file that print the message; "" if it is not known.
        level: how certain it is that the message means the condition.
        masks: conditions that are victims of this one.
        message: sentence with `{group}` fields of the pattern; "" = the condition's title.
        hint: what to do, where it differs from the condition's hint, with `{group}` fields as in
            `message`; "" = the condition's. A group whose text the reader types, as part of a
            command, matches nothing that a shell would obey.
        fixes: those of the condition's fixes that solve what the message says, the best first;
            None = all of them.
        unless: literal texts whose presence anywhere in the log refutes the hit.
        requires: literal texts, one of which must be somewhere in the log.
        not_after: literal texts whose presence further up in the same log refutes the hit.
        near: literal texts, one of which must be within 12 lines of the hit, or on it.
        not_near: literal texts, none of which may be within 12 lines of the hit.
        final: the hit counts only if nothing but lines like it follow (a hang at this line).
        compared: groups of the pattern whose values must agree between ranks; where they do not,
            the message says which rank shows what.
        startup: it can only happen before the first step; after one, the line means something
            else.
        echo: the other ranks print it when one has died, and launchers when they clean up: any
            failure that is not an echo explains it.
        importing: whether the hit counts only on an exception that was raised while an installed
            package was being imported (True), or never there (False); None: anywhere.
        goes_on: a script goes on after it: it explains the conditions that it masks if they come
            later, whatever their level, and no other failure.
        module: group of the pattern with the name of a Python module that was not found: the hit
            counts only if no other condition claims the line, and if the tracebacks do not show
            the module to be one of the project itself; "" = the pattern names none.
    """

    pattern: str
    examples: tuple[str, ...]
    not_examples: tuple[str, ...] = ()
    source: str = ""
    level: Level = Level.LIKELY
    masks: tuple[str, ...] = ()
    message: str = ""
    hint: str = ""
    fixes: tuple[str, ...] | None = None
    unless: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()
    not_after: tuple[str, ...] = ()
    near: tuple[str, ...] = ()
    not_near: tuple[str, ...] = ()
    final: bool = False
    compared: tuple[str, ...] = ()
    startup: bool = False
    echo: bool = False
    importing: bool | None = None
    goes_on: bool = False
    module: str = ""

    def hint_with(self, groups: Mapping[str, str]) -> str:
        """The hint with the texts of the pattern's groups; `?` for one that matched nothing.

        Of a pattern without groups it is text as it stands, with braces of its own.
        """
        return self.hint.format_map(defaultdict(lambda: "?", groups)) if groups else self.hint


class TracebackRule(msgspec.Struct, frozen=True, omit_defaults=True):
    """A function of a product that raises for one reason only, whatever the message.

    Attributes:
        file: end of the source file's path, such as `torch/utils/cpp_extension.py`.
        function: the function that must be on the stack.
        kinds: exceptions that count; empty for any.
        source: product, releases and file in which it was read.
        level: how certain it is that it means its condition.
        example: a traceback to which it applies.
    """

    file: str
    function: str
    source: str
    example: str
    kinds: tuple[str, ...] = ()
    level: Level = Level.LIKELY


class Boilerplate(msgspec.Struct, frozen=True):
    """A sentence with which a product explains what may have happened: evidence of nothing.

    Attributes:
        pattern: the sentence; what it matches is taken out of a line before signatures see it.
        source: product and releases that print it.
        examples: lines that contain it.
    """

    pattern: str
    source: str
    examples: tuple[str, ...]
