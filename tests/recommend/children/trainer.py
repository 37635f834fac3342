"""What the Hugging Face Trainer finds wrong in DeepSpeed configs beside its arguments.

argv: a JSON file of {name: {"config", "arguments"}}; prints {name: [differences, learning rate]}.
"""

import json
import sys

from transformers import HfArgumentParser, TrainingArguments
from transformers.integrations.deepspeed import HfTrainerDeepSpeedConfig

with open(sys.argv[1], encoding="utf-8") as file:
    asked = json.load(file)
found = {}
for name, case in asked.items():
    words = ["--output_dir", "/tmp/none", "--learning_rate", "3e-4", *case["arguments"]]
    (arguments,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses(words)
    config = HfTrainerDeepSpeedConfig(case["config"])
    config.trainer_config_process(arguments)
    made = config.config.get("optimizer", {}).get("params", {})
    found[name] = [config.mismatches, made.get("lr"), arguments.gradient_checkpointing]
print(json.dumps(found))
