"""Names that a module always has: one that lacks such a name is another file.

Modules of the standard library: CPython 3.8 to 3.14, every platform. Packages: names that all their
releases of the last years export (datasets 1.1-5.2, transformers 4.0-5.24, accelerate 0.1-1.15,
peft 0.2-0.21, tokenizers 0.10-0.23). Read 2026-11-30.
"""

from __future__ import annotations

from dsdoctor.api import Level, Signature

#: What other modules use of these while they are imported.
STANDARD = {
    "calendar": ("day_abbr", "monthrange", "timegm"),
    "cmd": ("Cmd",),
    "code": ("InteractiveConsole", "InteractiveInterpreter"),
    "copy": ("copy", "deepcopy"),
    "csv": ("DictReader", "DictWriter", "reader", "writer"),
    "dis": ("Bytecode", "get_instructions", "hasconst", "opmap"),
    "enum": ("Enum", "Flag", "IntEnum"),
    "glob": ("glob", "iglob"),
    "inspect": ("Parameter", "isclass", "isfunction", "signature"),
    "json": ("JSONDecoder", "JSONEncoder", "dumps", "loads"),
    "keyword": ("iskeyword", "kwlist"),
    "logging": ("Formatter", "Handler", "Logger", "StreamHandler", "getLogger"),
    "numbers": ("Integral", "Number", "Real"),
    "operator": ("attrgetter", "itemgetter", "index"),
    "pickle": ("Pickler", "Unpickler", "dumps", "loads"),
    "platform": ("machine", "python_version", "system"),
    "profile": ("Profile", "run"),
    "queue": ("Empty", "Full", "Queue"),
    "random": ("Random", "choice", "randint", "random", "sample", "seed", "shuffle"),
    "secrets": ("choice", "token_bytes", "token_hex"),
    "selectors": ("DefaultSelector",),
    "signal": ("SIGINT", "SIGTERM", "signal"),
    "socket": ("AF_INET", "gethostname", "socket"),
    "statistics": ("mean", "median", "stdev"),
    "string": ("Formatter", "Template", "ascii_letters", "ascii_lowercase", "digits"),
    "struct": ("Struct", "calcsize", "pack", "unpack"),
    "tempfile": ("NamedTemporaryFile", "TemporaryDirectory", "gettempdir", "mkdtemp"),
    "token": ("tok_name",),
    "tokenize": ("TokenInfo", "detect_encoding", "generate_tokens", "open"),
    "trace": ("Trace",),
    "types": ("FunctionType", "MethodType", "ModuleType", "SimpleNamespace"),
    "typing": ("Any", "Callable", "Generic", "TypeVar"),
    "uuid": ("UUID", "uuid4"),
}
#: What scripts import of these first.
PACKAGES = {
    "accelerate": ("Accelerator",),
    "datasets": ("Dataset", "DatasetDict", "concatenate_datasets", "load_dataset", "load_from_disk"),
    "peft": ("LoraConfig", "PeftModel", "get_peft_model"),
    "tokenizers": ("Tokenizer",),
    "transformers": ("AutoConfig", "AutoModel", "AutoTokenizer", "Trainer", "TrainingArguments"),
}  # fmt: skip
#: What such an import is taken for otherwise.
FOLLOW = ("dependency-version-conflict", "transformers-deepspeed-incompatible")


def _of_standard(module: str, names: tuple[str, ...]) -> Signature:
    return Signature(
        pattern=rf"^AttributeError: (?:partially initialized )?module '(?P<m>{module})' has no attribute '(?:{'|'.join(names)})'",
        source="python 3.5-3.14 Objects/moduleobject.c",
        level=Level.STRONG,
        message="a file or folder of the project is imported instead of `{m}` of the standard library",
        examples=tuple(
            f"AttributeError: module '{module}' has no attribute '{name}'" for name in names
        ),
        not_examples=(
            *(
                f"a test of AttributeError: module '{module}' has no attribute '{name}'"
                for name in names
            ),
        ),
        masks=FOLLOW,
    )


def _of_package(module: str, names: tuple[str, ...]) -> Signature:
    return Signature(
        # a checkout has the package in `src`
        pattern=rf"^ImportError: cannot import name '(?:{'|'.join(names)})' from '(?P<m>{module})' \((?!\S*(?:-packages|[/\\]src|py_src)[/\\])(?P<file>\S{{1,300}}[/\\]{module}(?:\.py|[/\\]__init__\.py))\)",
        source="python 3.7-3.14 Python/ceval.c",
        level=Level.STRONG,
        message="`{file}` is imported instead of the package `{m}`",
        examples=tuple(
            f"ImportError: cannot import name '{name}' from '{module}' (/home/me/job/{module}{end})"
            for name in names
            for end in (".py", "/__init__.py")
        ),
        not_examples=(
            f"ImportError: cannot import name '{names[0]}' from '{module}' (/env/lib/python3.11/site-packages/{module}/__init__.py)",
            f"ImportError: cannot import name '{names[0]}' from '{module}' (/home/me/{module}/src/{module}/__init__.py)",
        ),
        masks=FOLLOW,
    )


SIGNATURES = (
    *(_of_standard(module, names) for module, names in STANDARD.items()),
    *(_of_package(module, names) for module, names in PACKAGES.items()),
)
