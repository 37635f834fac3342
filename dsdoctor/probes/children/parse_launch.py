r"""Ask a launcher's own parser whether it accepts a command line; nothing is started.

    python parse_launch.py deepspeed|torchrun|accelerate ARGS…

Prints \x1edsdoctor:{"accepted": true} or {"accepted": false, "error": text}, or {"absent": text} if
the launcher cannot be imported. For accelerate it adds {"ignored": {key: closest option}}, the keys
of its configuration that do not become options, and {"in_ranks": true} if not the launcher rejects
a value, but each rank. Standard library and the launcher, Python 3.8 and later.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import sys
from typing import Any

SENTINEL = "\x1edsdoctor:"


def parser_of(launcher: str) -> Any:
    """The function that parses a list of words."""
    if launcher == "deepspeed":
        from deepspeed.launcher import runner

        return runner.parse_args
    if launcher == "torchrun":
        importlib.import_module("torch.distributed.run")
        return torchrun
    importlib.import_module("accelerate.commands.launch")
    return accelerate


def accelerate(arguments: list[str]) -> dict[str, str]:
    """Also reads the configuration that it would take, as `accelerate launch` does first.

    Keys of `deepspeed_config` become options of the same names; nothing reads the others
    (accelerate 0.12 to 1.15, commands/launch.py).
    """
    import difflib

    from accelerate.commands.config import config_args
    from accelerate.commands.launch import launch_command_parser

    asked = launch_command_parser().parse_args(arguments)
    if not os.path.isfile(asked.config_file or config_args.default_config_file):
        check_processes(asked, None)
        return {}  # a missing file that was passed is reported by its own condition
    config = config_args.load_config_from_file(asked.config_file)
    check_processes(asked, config)
    prepare_ranks(launch_command_parser().parse_args(arguments), config)
    known = sorted(vars(asked))
    keys = [key for key in getattr(config, "deepspeed_config", None) or {} if key not in known]
    return {str(key): "".join(difflib.get_close_matches(str(key), known, 1, 0.8)) for key in keys}


def check_processes(asked: Any, config: Any) -> None:
    """What `accelerate launch` rejects after parsing; nothing here depends on the machine.

    `_validate_launch_command`, and torch.distributed.run below its DeepSpeed launcher.
    """
    names = ("multi_gpu", "cpu", "tpu", "use_deepspeed", "use_fsdp")
    chosen = [name for name in names if getattr(asked, name, False)]
    if len(chosen) > 1:
        raise ValueError(
            "You can only use one of `--cpu`, `--multi_gpu`, `--tpu`, `--use_deepspeed`,"
            " `--use_fsdp` at a time"
        )
    count = asked.num_processes
    if count is None:
        count = getattr(config, "num_processes", None)
    if count is None:
        return
    kind = "" if chosen else str(getattr(config, "distributed_type", ""))
    if chosen == ["multi_gpu"] and count <= 1:
        raise ValueError("You need to use at least 2 processes to use `--multi_gpu`")
    if (chosen == ["use_deepspeed"] or kind.endswith("DEEPSPEED")) and count < 1:
        raise ValueError("num_processes must be > 0 with DeepSpeed, got %d" % count)


class InRanksError(ValueError):
    """What the launcher passes on and each rank rejects."""


def prepare_ranks(asked: Any, config: Any) -> None:
    """Computes what `accelerate launch` passes to its ranks, and reads it as a rank does.

    Only errors that speak of values count: others come of this machine, or of a release that works
    in another way. DeepSpeed's plugin is left out: it needs the script's own config.
    """
    from accelerate.commands import launch

    validate = getattr(launch, "_validate_launch_command", None)
    if validate is None or str(getattr(config, "compute_environment", "")).endswith("SAGEMAKER"):
        return
    try:
        asked = validate(asked)[0]
        asked.deepspeed_fields_from_accelerate_config = ""
        if asked.tpu:
            return
        if asked.use_deepspeed and not asked.cpu:
            variables = launch.prepare_deepspeed_cmd_env(asked)[1]
        elif not asked.cpu and (asked.use_fsdp or asked.use_megatron_lm or asked.multi_gpu):
            variables = launch.prepare_multi_gpu_env(asked)
        else:
            variables = launch.prepare_simple_launcher_cmd_env(asked)[1]
    except (ValueError, AssertionError):
        raise
    except Exception as error:
        if "FP8 is not available" in str(error):
            raise ValueError(str(error)) from None
        return
    create_plugins(variables)


def create_plugins(variables: dict[str, str]) -> None:
    """As `Accelerator()` creates them from its environment."""
    from accelerate.utils import dataclasses

    plugins = (
        ("TorchDynamoPlugin", "ACCELERATE_DYNAMO_BACKEND"),
        ("FullyShardedDataParallelPlugin", "ACCELERATE_USE_FSDP"),
        ("MegatronLMPlugin", "ACCELERATE_USE_MEGATRON_LM"),
    )
    os.environ.update(variables)
    for name, switch in plugins:
        if not hasattr(dataclasses, name) or variables.get(switch, "false") == "false":
            continue
        try:
            getattr(dataclasses, name)()
        except (ValueError, KeyError) as error:
            raise InRanksError("%s: %s" % (name, str(error)[:300])) from None
        except Exception:  # no GPU here, another torch
            return


def torchrun(arguments: list[str]) -> None:
    """Also creates the settings of a run, as torchrun does before it starts the first process.

    It would create the folder of the logs too (torch 2.3 to 2.15 elastic/multiprocessing/api.py), a
    temporary one if none is given, but not for `/dev/null`. It rejects a file.
    """
    from torch.distributed import run

    asked = run.parse_args(arguments)
    if str(asked.nproc_per_node) in ("auto", "gpu", "xpu", "cpu"):
        asked.nproc_per_node = "1"  # depends on the machine, which may be another one
    if not os.path.isfile(asked.log_dir or ""):
        asked.log_dir = os.devnull
    config = run.config_from_args(asked)[0]
    if config.nproc_per_node < 1:  # WorkerSpec asserts it (elastic/agent/server/api.py)
        raise ValueError("nproc_per_node must be > 0, got %d" % config.nproc_per_node)


def say(**record: Any) -> None:
    sys.stdout.write(SENTINEL + json.dumps(record) + "\n")
    sys.stdout.flush()


def main() -> None:
    launcher, arguments = sys.argv[1], sys.argv[2:]
    heard = io.StringIO()
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            parse = parser_of(launcher)
    except Exception as error:
        say(absent="%s: %s" % (type(error).__name__, str(error)[:300]))
        return
    try:
        with contextlib.redirect_stderr(heard), contextlib.redirect_stdout(io.StringIO()):
            answer = parse(arguments)
    except SystemExit as end:
        if end.code not in (0, None):
            lines = heard.getvalue().strip().splitlines()
            last = lines[-1] if lines else str(end.code)
            say(accepted=False, error=last.partition("error: ")[2] or last)
            return
    except Exception as error:
        in_ranks = isinstance(error, InRanksError)
        name = "" if in_ranks else "%s: " % type(error).__name__
        say(accepted=False, error=(name + str(error)[:300]).rstrip("."), in_ranks=in_ranks)
        return
    say(accepted=True, ignored=answer if launcher == "accelerate" else {})


if __name__ == "__main__":
    main()
