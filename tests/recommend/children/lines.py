"""Launch lines read by the launchers' own parsers.

argv: a JSON file of {name: {"argv": […], "folder": path}}; prints {name: what the launcher made of
it}. Run apart, for the imports warn.
"""

import json
import os
import sys
from typing import Any


def deepspeed(words: "list[str]", folder: str) -> "dict[str, Any]":
    """What `deepspeed` would start where."""
    from deepspeed.launcher import runner

    os.chdir(folder)
    args = runner.parse_args(words)
    pool = runner.fetch_hostfile(args.hostfile)
    if pool is None:
        pool = {"localhost": max(int(i) for i in args.include.rpartition(":")[2].split(",")) + 1}
    hosts = {host: list(range(count)) for host, count in pool.items()}
    active = runner.parse_resource_filter(hosts, include_str=args.include, exclude_str=args.exclude)
    return {
        "active": active,
        "port": args.master_port,
        "address": args.master_addr,
        "nodes": args.num_nodes,
        "script": args.user_script,
        "script_args": args.user_args,
    }


def torchrun(words: "list[str]", folder: str) -> "dict[str, Any]":
    """What `torchrun` would start."""
    from torch.distributed.run import config_from_args, get_args_parser

    args = get_args_parser().parse_args(words)
    config = config_from_args(args)[0]
    return {
        "nodes": [config.min_nodes, config.max_nodes],
        "ranks": config.nproc_per_node,
        "endpoint": config.rdzv_endpoint,
        "rank": config.rdzv_configs.get("rank"),
        "script": args.training_script,
        "script_args": args.training_script_args,
    }


def accelerate(words: "list[str]", folder: str) -> "dict[str, Any]":
    """What `accelerate launch` would start."""
    from accelerate.commands.launch import _validate_launch_command, launch_command_parser
    from accelerate.utils import prepare_deepspeed_cmd_env

    os.chdir(folder)
    args = launch_command_parser().parse_args(words[1:])
    args, _, _ = _validate_launch_command(args)
    args.deepspeed_fields_from_accelerate_config = ""  # set by launch_command on the way
    command, env = prepare_deepspeed_cmd_env(args)
    return {
        "command": command,
        "deepspeed": args.use_deepspeed,
        "processes": args.num_processes,
        "nproc_per_node": args.nproc_per_node,
        "rank": args.machine_rank,
        "machines": args.num_machines,
        "address": args.main_process_ip,
        "port": args.main_process_port,
        "visible": env.get("CUDA_VISIBLE_DEVICES"),
        "config": env.get("ACCELERATE_DEEPSPEED_CONFIG_FILE"),
        "script": args.training_script,
    }


def main() -> None:
    """Each line by the parser of its own launcher."""
    with open(sys.argv[1], encoding="utf-8") as file:
        lines = json.load(file)
    parsers = {"deepspeed": deepspeed, "torchrun": torchrun, "accelerate": accelerate}
    made = {}
    for name, line in lines.items():
        made[name] = parsers[line["argv"][0]](line["argv"][1:], line["folder"])
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        json.dump(made, file)


main()
