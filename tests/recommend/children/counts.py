"""Counts parameters of model configs by building them with transformers on the meta device.

argv: a JSON file of {name: config}; prints {name: count}. Run apart, for the import warns.
"""

import json
import sys

import torch
from transformers import AutoConfig, AutoModelForCausalLM


def count(config: "dict[str, object]") -> int:
    """All parameters, a tied matrix once."""
    values = dict(config)
    made = AutoConfig.for_model(values.pop("model_type"), **values)
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(made)
    model.tie_weights()
    return sum(parameter.numel() for parameter in model.parameters())


def main() -> None:
    with open(sys.argv[1], encoding="utf-8") as file:
        configs = json.load(file)
    print(json.dumps({name: count(config) for name, config in configs.items()}))


main()
