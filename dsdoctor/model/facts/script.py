"""Facts about the training script, read from its source."""

from __future__ import annotations

import msgspec

from dsdoctor.model.facts.base import Fact


class ScriptImports(Fact, frozen=True, kw_only=True):
    """Modules that the training script imports unconditionally, as the interpreter finds them.

    Attributes:
        script: the script.
        missing: modules that the interpreter does not find, each with its line.
        found: modules that it finds.
        bare: modules of which it finds only a folder of the project without any code, each with its
            line: an empty module, if a package was meant.
        own: line of the first import that is found next to the script; 0 = none. What is imported
            there may change where later modules are looked for.
        relative: line of its first relative import, which fails in a script that is started by its
            path; 0 = none, or it may name a package of its own.
        changes_path: the script itself may change where modules are looked for.
        names: what it imports from packages of the field, as `trl:SFTTrainer` or `peft`, each with
            its line; not from modules next to the script.
        prepared: `optimizer` and `scheduler`, if the script creates it and passes it to
            Accelerate's `prepare` whatever the config contains, each with its line.
    """

    script: str
    missing: dict[str, int] = {}
    found: tuple[str, ...] = ()
    bare: dict[str, int] = {}
    own: int = 0
    relative: int = 0
    changes_path: bool = False
    names: dict[str, int] = {}
    prepared: dict[str, int] = {}


class ScriptSyntax(Fact, frozen=True, kw_only=True):
    """Whether the interpreter can parse the training script and its own modules.

    Attributes:
        script: the script.
        parsed: how many files were parsed: the script, and the modules next to it that it
            imports unconditionally, directly or through each other.
        file: the first of them that the interpreter cannot parse; None = it parses all.
        line: the line at which it stops.
        error_type: `SyntaxError`, `IndentationError`, `TabError` or `ValueError`.
        error: its message, without the text of the line.
        newer: version of dsdoctor's own Python if it is a newer one and parses that file.
    """

    script: str
    parsed: int = 0
    file: str | None = None
    line: int = 0
    error_type: str = ""
    error: str = ""
    newer: str | None = None


class ScriptOptions(Fact, frozen=True, kw_only=True):
    """What the training script's own parser says of the command's arguments.

    Attributes:
        script: the script.
        of: `argparse`, or `transformers` for options that are fields of dataclasses.
        unknown: options of the command that the parser does not know.
        near: for an unknown option, what it is called there, or one with a similar name.
        refusal: what else the parser rejects, in its own words; "" = nothing.
        launcher: what starts the script, as in `LaunchCommand`.
        by_launcher: the option that the launcher passes to every script; "" = none.
    """

    script: str
    of: str = "argparse"
    unknown: tuple[str, ...] = ()
    near: dict[str, str] = {}
    refusal: str = ""
    launcher: str = ""
    by_launcher: str = ""


class WrongArgument(msgspec.Struct, frozen=True, kw_only=True):
    """An argument that a class or function of an installed package does not take.

    Attributes:
        line: line of the call.
        called: what is called, as the script writes it.
        argument: the argument's name.
        near: what it is called there, or one with a similar name; "" = there is none.
        package: top-level module of the package.
    """

    line: int
    called: str
    argument: str
    near: str = ""
    package: str = ""


class CallSetting(msgspec.Struct, frozen=True, kw_only=True):
    """A text that the script surely passes to a class of Hugging Face's libraries.

    Attributes:
        line: line of the call.
        called: what is called, as the script writes it.
        argument: the argument's name (`report_to`).
        value: the text.
    """

    line: int
    called: str
    argument: str
    value: str


class ScriptCalls(Fact, frozen=True, kw_only=True):
    """Calls of the training script that are made whenever it runs.

    Attributes:
        script: the script.
        wrong: arguments that what is called does not take, in the order of their lines.
        settings: settings that may need a package of their own, in the order of their lines.
    """

    script: str
    wrong: tuple[WrongArgument, ...] = ()
    settings: tuple[CallSetting, ...] = ()


class MissingPath(msgspec.Struct, frozen=True, kw_only=True):
    """A file or folder that the script reads, and that does not exist or cannot be read.

    Attributes:
        path: as it is written.
        read_by: what names it: a line of the script, or an option of the command.
        why: `empty` or `denied` for a file that exists; "" = it does not.
    """

    path: str
    read_by: str
    why: str = ""


class UncachedName(msgspec.Struct, frozen=True, kw_only=True):
    """What the script loads from the hub.

    Attributes:
        name: `owner/name`.
        line: line of the script.
        is_data: it is a data set.
    """

    name: str
    line: int
    is_data: bool


class ScriptPaths(Fact, frozen=True, kw_only=True):
    """Files and folders that the training script surely reads.

    Attributes:
        script: the script.
        folder: working directory of the command.
        missing: those that do not exist.
        unusable: files of data that the command names and that are empty or may not be read.
        uncached: models and data sets of the hub that it loads by name and that no cache holds.
        pointers: files in a folder of a model that it loads that are pointers of Git LFS.
    """

    script: str
    folder: str = ""
    missing: tuple[MissingPath, ...] = ()
    unusable: tuple[MissingPath, ...] = ()
    uncached: tuple[UncachedName, ...] = ()
    pointers: tuple[MissingPath, ...] = ()


class TrainingJob(Fact, frozen=True, kw_only=True):
    """The model that the command trains, and how, as far as its options and its script say.

    Attributes:
        model: the model as it is named; "" = unknown.
        named_by: what names it: an option, or a line of the script.
        path: what `recommend --model` takes for it: a name that is known, or a folder.
        shape: its shape, as in `RunNeeds.model`; None = unknown.
        preset: the DeepSpeed config that comes with the trainer, if the command chooses one.
        method: `full` (all parameters are trained), `lora` (adapters), or "" if it is not known
            which parameters are trained, or whether any are.
        lora_rank: rank of the adapters; None = not stated.
        micro_batch: samples of a rank in one forward pass; None = not stated.
        sequence: the most tokens of a sample; None = not stated.
        checkpointing: activations are recomputed; None = not stated.
        saves_states: the trainer saves optimizer states with the weights; None = unknown.
    """

    model: str = ""
    named_by: str = ""
    path: str = ""
    shape: dict[str, object] | None = None
    preset: str = ""
    method: str = ""
    lora_rank: int | None = None
    micro_batch: int | None = None
    sequence: int | None = None
    checkpointing: bool | None = None
    saves_states: bool | None = None
