"""Builds models on the meta device and measures their passes, all in one process.

argv: the folder of the measuring children, and a JSON file of {name: {config, cases}}. Prints
{name: {tensors, peaks}}.
"""

import importlib
import json
import sys

import torch
import transformers

sys.path.append(sys.argv[1])
measure_model = importlib.import_module("measure_model")
transformers.logging.set_verbosity_error()


def ask(config: "dict[str, object]", cases: "list[dict[str, object]]") -> "dict[str, object]":
    """The tensors of a model and the peak of each case."""
    made = measure_model.make_config(transformers, config)
    kind = measure_model.head_of(transformers, made)
    tensors = measure_model.describe(torch, kind, made)["tensors"]
    peaks = []
    for case in cases:
        again = measure_model.make_config(transformers, config)
        found = measure_model.measure(torch, kind, again, case)
        peaks.append(max(found["forward_peak"], *(peak for peak, *_ in found["segments"])))
    return {"tensors": tensors, "peaks": peaks}


with open(sys.argv[2], encoding="utf-8") as file:
    print(json.dumps({name: ask(**asked) for name, asked in json.load(file).items()}))
