"""Messages of `checkpoint-mismatch`, one signature for each.

Over 400 lines because it is a table.
"""

from __future__ import annotations

from dsdoctor.api import Level, Signature

SIGNATURES = (
    Signature(
        # a module that was pickled whole has only the attributes of the torch that made it
        pattern=r"'(?:Upsample' object has no attribute 'recompute_scale_factor|GELU' object has no attribute 'approximate|AvgPool[123]d' object has no attribute 'divisor_override|Conv[123]d' object has no attribute 'padding_mode)'",
        source="torch nn/modules: padding_mode since 1.1, divisor_override since 1.2, recompute_scale_factor of Upsample since 1.11, approximate of GELU since 1.12",
        message="The model was saved whole (`torch.save(model)`) with an older torch, whose layers lack what this torch reads",
        hint="build the model in code and load only its weights (`load_state_dict`): with the older torch, load the file and save `model.state_dict()`; or set the missing attribute of each such layer after loading",
        examples=(
            "AttributeError: 'Upsample' object has no attribute 'recompute_scale_factor'",
            "torch.nn.modules.module.ModuleAttributeError: 'AvgPool2d' object has no attribute 'divisor_override'",
            "AttributeError: 'GELU' object has no attribute 'approximate'",
            "AttributeError: 'Conv2d' object has no attribute 'padding_mode'",
        ),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"(?:No such file|does not exist|not found|Errno 2\]|missing).{0,300}_(?:optim|model)_states\.pt|_(?:optim|model)_states\.pt.{0,120}(?:does not exist|not found|No such)",
        source="python 3.3-3.14 Objects/exceptions.c; deepspeed 0.3-0.19 runtime/engine.py",
        examples=(
            "FileNotFoundError: [Errno 2] No such file or directory: 'c/global_step9/zero_pp_rank_1_mp_rank_00_optim_states.pt'",
            "/c/mp_rank_00_model_states.pt does not exist",
        ),
        message="A shard of the checkpoint is missing: it was saved with another world size or ZeRO stage, or it is incomplete",
        not_examples=("Saved c/mp_rank_00_model_states.pt",),
        level=Level.CERTAIN,
    ),
    Signature(
        pattern="(?i)checkpoint being loaded used a (?:DP|TP|MP) world size|expected .{0,40}zero checkpoint",
        source="deepspeed 0.14.5-0.19.8 runtime/engine.py",
        examples=(
            "ZeRORuntimeException: The checkpoint being loaded used a DP world size of 4 but the current world size is 2",
            "AssertionError: The checkpoint being loaded used a TP world size of 2 but the current TP world size is 1.",
            "expected zero checkpoint",
        ),
        not_examples=("loading zero checkpoint shards",),
        level=Level.CERTAIN,
    ),
    Signature(
        pattern="Unable to find latest file",
        source="deepspeed 0.14.5-0.19.8 runtime/engine.py",
        examples=(
            "Unable to find latest file at c/latest, if trying to load latest checkpoint make sure it exists",
        ),
        level=Level.WEAK,
        message="The checkpoint folder has no file `latest`, so nothing was loaded",
        hint="pass the folder that contains the file `latest` to `load_checkpoint`, or a `tag`; a first run has none",
    ),
    Signature(
        pattern=r"in (?:_load_zero_checkpoint|load_checkpoint|_load_checkpoint|_get_all_zero_checkpoint\w*|_rigid_load_state_dict|_load_rigid\w*|_load_elastic\w*)\b",
        source=(
            "python 3.3-3.14 Lib/traceback.py: frames of deepspeed 0.3-0.19 runtime/engine.py, "
            "runtime/zero/stage_1_and_2.py, stage3.py"
        ),
        examples=(
            '  File "/x/deepspeed/runtime/engine.py", line 3, in _load_zero_checkpoint',
            '  File "/x/deepspeed/runtime/zero/stage_1_and_2.py", line 2300, in _load_elastic_checkpoint',
            'File "/opt/env/lib/python3.10/site-packages/deepspeed/runtime/engine.py", line 2811, in load_checkpoint',
            'File "/opt/env/lib/python3.10/site-packages/deepspeed/runtime/engine.py", line 2860, in _load_checkpoint',
            'File "/opt/train/lib/python3.11/site-packages/deepspeed/runtime/engine.py", line 4848, in _get_all_zero_checkpoints',
            'File "/opt/env/lib/python3.10/site-packages/deepspeed/runtime/zero/stage3.py", line 2700, in _rigid_load_state_dict',
            "in _load_rigidname",
        ),
        not_examples=(
            "def load_checkpoint(path)",
            "load_checkpoint(path)",
        ),
        level=Level.HINT,
        near=("_states.pt", "world size", "global_step", "zero_pp_rank"),
    ),
    Signature(
        pattern="loaded state dict (?:contains a parameter group|has a different number of parameter groups)",
        source="torch 1.0-2.13 optim/optimizer.py, include/torch/csrc/api/include/torch/optim/serialize.h; bitsandbytes 0.41-0.50 optim/optimizer.py",
        message="The checkpoint's optimizer state does not belong to the parameters that this run trains",
        hint="train the same parameters as the run that saved it (the same LoRA modules, frozen layers and parameter groups), or resume from the weights only, without the optimizer state",
        examples=(
            "ValueError: loaded state dict has a different number of parameter groups",
            "ValueError: loaded state dict contains a parameter group that doesn't match the size of optimizer's group",
        ),
    ),
    Signature(
        pattern=r"Expected \d+ of '\*_(?:optim|model)_states\.pt' under",
        source="deepspeed 0.14.5-0.19.8 utils/zero_to_fp32.py",
        examples=(
            "ValueError: Expected 8 of '*_optim_states.pt' under 'ckpt/global_step90' but found 6 files.",
            "Expected 7 of '*_model_states.pt' under",
        ),
        not_examples=("saved 8 of '*_optim_states.pt' under './global_step7'",),
        level=Level.STRONG,
        message="Optimizer shards of the checkpoint are missing, or are left over from an earlier run",
        hint="copy the missing files, or use a folder that one `save_checkpoint` wrote",
    ),
    Signature(
        pattern="failed to resume from checkpoint",
        source="transformers 5.23.0 integrations/deepspeed.py",
        examples=("ValueError: [deepspeed] failed to resume from checkpoint out/run1",),
        level=Level.STRONG,
        message="DeepSpeed finds nothing to load in this folder: the file `latest` is missing",
        hint="copy the whole folder, with `latest` and the folder that it names, or write that folder's "
        "name into a file `latest`",
    ),
    Signature(
        pattern="Unable to find 'latest' file",
        source="deepspeed 0.19.8 utils/zero_to_fp32.py",
        examples=("ValueError: Unable to find 'latest' file at adapters/latest",),
        level=Level.STRONG,
        message="The checkpoint has no `latest` file",
        hint="pass the directory that was passed to `save_checkpoint`, or pass the tag",
    ),
    Signature(
        pattern="No ZeRO files found in",
        source="deepspeed 0.19.8 checkpoint/zero_checkpoint.py",
        examples=("No ZeRO files found in",),
        level=Level.STRONG,
        message="The folder contains no ZeRO shards",
        hint="pass the folder of a step, whose files are `zero_pp_rank_*_optim_states.pt`",
    ),
    Signature(
        pattern="can't find .{0,60}state files in directory",
        source="deepspeed 0.19.8 checkpoint/ds_to_universal.py",
        examples=("can't find state files in directory",),
        not_examples=("find state files in directory",),
        level=Level.STRONG,
        message="The folder contains no model states of ZeRO stage 3: it is another folder, or files are missing",
        hint="pass the folder of a step, whose files are `zero_pp_rank_*_model_states.pt`, with those of all nodes",
    ),
    Signature(
        pattern="can't find model states file at",
        source="deepspeed 0.19.8 utils/zero_to_fp32.py",
        examples=(
            "FileNotFoundError: can't find model states file at 'x/zero_pp_rank_0_mp_rank_00_model_states.pt'",
        ),
        level=Level.STRONG,
        message="The folder has no model states of rank 0: it is another folder, or files are missing",
        hint="pass the folder of a step that contains the files of all ranks",
    ),
    Signature(
        pattern="is not a zero checkpoint",
        source="deepspeed 0.12-0.19 utils/zero_to_fp32.py, runtime/engine.py",
        examples=("is not a zero checkpoint",),
        level=Level.STRONG,
        message=(
            "The optimizer states of this file are not of ZeRO: bf16 with fp32 gradients and ZeRO"
            " stage 1 (`BF16_Optimizer`), or MoE without ZeRO"
        ),
        hint="take the weights from `mp_rank_*_model_states.pt` of the same folder",
    ),
    Signature(
        pattern="is not a model state checkpoint",
        source="deepspeed 0.12-0.19 utils/zero_to_fp32.py, runtime/engine.py",
        examples=("is not a model state checkpoint",),
        level=Level.STRONG,
        message=(
            "A file of the folder holds no model states of an engine, such as one of an expert:"
            " `zero_to_fp32` cannot join the experts of DeepSpeed's MoE layers"
        ),
        hint=("pass the folder of a model without them; load one with them by `load_checkpoint`"),
    ),
    Signature(
        pattern="Empty ds_version in checkpoint",
        source="deepspeed 0.19.8 runtime/bf16_optimizer.py, runtime/zero/stage_1_and_2.py",
        examples=("Empty ds_version in checkpoint",),
        level=Level.STRONG,
        message="The checkpoint does not record which DeepSpeed release wrote it",
        hint="load it with the release that wrote it",
    ),
    Signature(
        pattern="Invalid for universal checkpoint",
        source="deepspeed 0.19.8 runtime/engine.py",
        examples=("Invalid for universal checkpoint",),
        level=Level.STRONG,
        message="The folder is not a universal checkpoint: it has no `latest_universal`",
        hint="convert it with `python -m deepspeed.checkpoint.ds_to_universal --input_folder DIR/TAG --output_folder DIR/TAG_universal --inject_missing_state`, then load what that wrote",
    ),
    Signature(
        pattern=r"assert len\(self\.ckpt_list\) > 0",
        source="deepspeed 0.19.8 runtime/state_dict_factory.py",
        examples=("    assert len(self.ckpt_list) > 0",),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"Required \S+ state is missing in checkpoint",
        source="deepspeed 0.19.8 checkpoint/ds_to_universal.py",
        examples=("Required x1 state is missing in checkpoint",),
        not_examples=("x1 state is missing in checkpoint",),
        level=Level.STRONG,
        message="The checkpoint has no `universal_checkpoint_info`, which its conversion needs",
        hint="add `--inject_missing_state` to the command (DeepSpeed 0.15 or newer), or add it to the client state and save the checkpoint again",
    ),
    Signature(
        pattern=r"in (?:_rigid_load_state_dict|_load_elastic_checkpoint|_restore_base_optimizer_state|_restore_from_elastic\w*|_load_global_state|load_hp_checkpoint_state\w*)\b",
        source=(
            "python 3.3-3.14 Lib/traceback.py: frames of deepspeed 0.3-0.19 "
            "runtime/zero/stage_1_and_2.py, stage3.py, checkpoint/universal_checkpoint.py"
        ),
        examples=(
            '  File "/x/deepspeed/runtime/zero/stage3.py", line 2700, in _rigid_load_state_dict',
            '  File "/x/deepspeed/runtime/zero/stage_1_and_2.py", line 2200, in _restore_base_optimizer_state',
            "in _load_elastic_checkpoint",
            "in _restore_from_elasticname",
            "in _load_global_state",
            "in load_hp_checkpoint_statename",
        ),
        not_examples=("self._rigid_load_state_dict(sd)",),
        level=Level.WEAK,
    ),
    Signature(
        pattern="Invalid checkpoints and world size for sd",
        source="deepspeed 0.19.8 runtime/state_dict_factory.py",
        examples=("Invalid checkpoints and world size for sd",),
        level=Level.STRONG,
    ),
    Signature(
        pattern="optimizer global state is missing",
        source="deepspeed 0.19.8 runtime/base_optimizer.py, runtime/zero/stage3.py",
        examples=("optimizer global state is missing",),
        level=Level.STRONG,
        message="The universal checkpoint has no `zero/optimizer_state.pt`",
        hint="convert the checkpoint with `python -m deepspeed.checkpoint.ds_to_universal` again, from the files of all ranks",
    ),
    Signature(
        pattern="neither 'model' or 'module' keys",
        source="deepspeed 0.19.8 runtime/state_dict_factory.py, inference/engine.py",
        examples=("neither 'model' or 'module' keys",),
        level=Level.STRONG,
        message="The checkpoint stores no weights under `model` or `module`",
        hint="store the weights under one of these keys",
    ),
    Signature(
        pattern="different from saved mp_world_size",
        source="deepspeed 0.19.8 runtime/state_dict_factory.py",
        examples=("AssertionError: checkpoint count 4 is different from saved mp_world_size 2",),
        level=Level.STRONG,
    ),
    Signature(
        pattern="State dicts of all partitions must",
        source="deepspeed 0.19.8 runtime/zero/stage_1_and_2.py",
        examples=("AssertionError: State dicts of all partitions must have the same step value",),
        level=Level.STRONG,
        message="The shards of the checkpoint are from different steps",
        hint="load a folder that one `save_checkpoint` wrote",
    ),
    Signature(
        pattern=r"key: \S+ is not found in the checkpoint",
        source="deepspeed 0.19.8 runtime/state_dict_factory.py",
        examples=(
            "AssertionError: key: fp32_groups is not found in the checkpoint out/mp_rank_00",
        ),
        not_examples=("fp32_groups is not found in the checkpoint out/mp_rank_00",),
        level=Level.STRONG,
    ),
    Signature(
        pattern="[Ee]xpert checkpoint file (?:not found|is corrupt)",
        source="deepspeed 0.19.8 runtime/engine.py, checkpoint/autoep_universal.py",
        examples=(
            "Expert checkpoint file not found",
            "Expert checkpoint file is corrupt",
        ),
        level=Level.STRONG,
        message="An expert's file is missing from the checkpoint, or damaged",
        hint="copy the file again, or load another checkpoint",
    ),
    Signature(
        pattern=r"checkpoint version: \S+ is not supported",
        source="deepspeed 0.19.8 runtime/state_dict_factory.py",
        examples=("checkpoint version: x1 is not supported",),
        not_examples=("checkpoint version: x1 is not",),
        level=Level.STRONG,
        message="This DeepSpeed does not read Megatron checkpoints of that version",
        hint="convert the checkpoint to a version that it reads",
    ),
    Signature(
        pattern="Cannot load a checkpoint with gradient clipping",
        source="deepspeed 0.19.8 runtime/zero/stage_1_and_2.py",
        examples=("Cannot load a checkpoint with gradient clipping",),
        level=Level.STRONG,
        message="The checkpoint was saved with gradient clipping, but `compute_grad_norm` is false",
        hint="set `compute_grad_norm` to true to load it",
    ),
    Signature(
        pattern="checkpoint parameter-alignment layout does not",
        source="deepspeed 0.19.8 runtime/zero/stage_1_and_2.py",
        examples=("checkpoint parameter-alignment layout does not",),
        level=Level.STRONG,
        message="The checkpoint was saved with a different `parameter_alignment`",
        hint="set `parameter_alignment` as it was when the checkpoint was saved",
    ),
    Signature(
        pattern=r"^(?:[\w.]*\.)?\w*(?:Error|Exception): (?=.{0,300}[Cc]heckpoint).{0,300}\b(?:dp_world_size|ZeRO|zero stage|partition(?:s|ed|ing)?|shards?|global_step\d*|universal|mp_rank|pp_rank)\b",
        source=(
            "any package that refuses a checkpoint for its shape, such as deepspeed 0.3-0.19 "
            "runtime/zero, megatron_core 0.5-0.16 dist_checkpointing"
        ),
        examples=(
            "RuntimeError: checkpoint was written with 8 shards, found 4",
            "ValueError: Loading a universal checkpoint needs its own folder",
            "deepspeed.runtime.zero.utils.ZeRORuntimeException: The checkpoint being loaded used a DP world size of 16 but the current world size is 8. Automatic adjustment of ZeRO's optimizer state partitioning with a new world size is not currently supported.",
            "RuntimeError: Checkpoint dp_world_size",
            "RuntimeError: Checkpoint zero stage",
            "ValueError: Expected 8 of '*_optim_states.pt' under 'ckpt/global_step90' but found 6 files. Possibly due to an overwrite of an old checkpoint, or a checkpoint didn't get saved by one or more processes.",
            "RuntimeError: Checkpoint mp_rank",
            "RuntimeError: Checkpoint pp_rank",
        ),
        not_examples=("ValueError: checkpoint folder is empty",),
        level=Level.HINT,
        not_near=("CUDA out of memory",),
    ),
    Signature(
        pattern=r"can't find \S{0,40}_states\.pt files in directory",
        source="deepspeed 0.9-0.19 utils/zero_to_fp32.py, checkpoint/ds_to_universal.py",
        examples=("FileNotFoundError: can't find *_optim_states.pt files in directory 'out'",),
        not_examples=("found *_optim_states.pt files in directory 'out'",),
    ),
    Signature(
        pattern="CheckpointingException: ",
        source="megatron_core 0.5-0.16 dist_checkpointing/core.py",
        examples=("CheckpointingException: ",),
    ),
    Signature(
        pattern="CheckpointException ranks",
        source="torch 2.13.0 distributed/checkpoint/api.py",
        examples=("CheckpointException ranks",),
    ),
    Signature(
        pattern="Missing key in checkpoint state_dict",
        source="torch 2.13.0 distributed/checkpoint/default_planner.py",
        examples=("Missing key in checkpoint state_dict",),
    ),
    Signature(
        pattern=r"value from checkpoint \([^)]{0,80}\) is not equal",
        source="Megatron-LM 2-3, megatron_core 0.4-0.16 training/checkpointing.py",
        examples=(
            "AssertionError: tensor_model_parallel_size value from checkpoint (2) is not equal to the input argument value (4).",
        ),
        not_examples=("value from checkpoint (2) taken",),
        message="The checkpoint was saved with a different value of the setting that the error names",
        hint="start with the value that it was saved with, or convert the checkpoint "
        "with the framework's own tool",
    ),
    Signature(
        pattern=r"heckpoint(?: was|s were) saved with .{1,120}\b(?:but|while|current|load)",
        source=(
            "programs' own checks of a checkpoint, such as megatron_core 0.5-0.16 "
            "optimizer/distrib_optimizer.py"
        ),
        examples=(
            "RuntimeError: Checkpoint was saved with pipeline_parallel_size=2 but the job has 4",
            "heckpoints were saved with   but",
            "heckpoint was saved with   while",
            "heckpoint was saved with   current",
            "heckpoint was saved with   load",
        ),
        not_examples=("checkpoint was saved with 8 ranks",),
        message="The checkpoint was saved with a different value of the setting that the error names",
        hint="start with the value that it was saved with, or convert the checkpoint "
        "with the framework's own tool",
    ),
    Signature(
        pattern="(?:Cannot find|Can't find|[Nn]o such file.{0,300}|does not exist.{0,80})latest_universal",
        source=(
            "deepspeed 0.11-0.19 runtime/engine.py, checkpoint/ds_to_universal.py; python 3.3-3.14 "
            "Objects/exceptions.c"
        ),
        examples=(
            "Cannot findlatest_universal",
            "Can't findlatest_universal",
            "No such file ... latest_universal",
            "does not exist ... latest_universal",
        ),
        not_examples=(
            "RuntimeError: Cannot find a working triton installation. More information on installing Triton can be found at https://github.com/openai/triton",
        ),
    ),
    Signature(
        pattern=r"No such file or directory: '[^']{0,300}rng_state_\d{1,5}\.pth'",
        source="huggingface_hub 2.4.0 cli/upload.py",
        examples=(
            "FileNotFoundError: [Errno 2] No such file or directory: 'out/checkpoint-9/rng_state_3.pth'",
        ),
        not_examples=("FileNotFoundError: [Errno 2] No such file or directory: 'g++'",),
    ),
    Signature(
        pattern="KeyError: 'dp_world_size'",
        source="python 3.3-3.14 Objects/dictobject.c",
        examples=("KeyError: 'dp_world_size'",),
    ),
    Signature(
        pattern=r"ValueError: unknown zero stage \d",
        source="deepspeed 0.4-0.19 utils/zero_to_fp32.py",
        examples=("ValueError: unknown zero stage 7",),
        not_examples=("ValueError: unknown zero stage is fine",),
    ),
    Signature(
        pattern="KeyError: '?partition_count",
        source="python 3.3-3.14 Objects/dictobject.c",
        examples=("KeyError: partition_count",),
    ),
    Signature(
        # sizes of 0 and 1 are those of ZeRO-3's empty weights; unless they are strict, mmcv (0.5-1.7
        # runner/checkpoint.py) and mmengine list what differs below a warning and go on
        pattern=r"^\s*size mismatch for (?P<name>\S+): copying a param with shape (?P<have>torch\.Size\(\[(?![01]\b)\d.{0,60}?\)) from checkpoint, the shape in current model is (?P<want>torch\.Size\(\[(?![01]\b)\d.{0,60}?\))",
        source="torch 1.0-2.13 nn/modules/module.py",
        message="`{name}` is {have} in the checkpoint and {want} in the model",
        hint="build the model with the sizes (classes, vocabulary, layers) that it was saved with, or leave these weights out",
        examples=(
            "size mismatch for head.weight: copying a param with shape torch.Size([7, 256]) from checkpoint, the shape in current model is torch.Size([5, 256]).",
        ),
        not_examples=(
            "size mismatch for w: copying a param with shape torch.Size([0]) from checkpoint, the shape in current model is torch.Size([5, 256]).",
        ),
        not_after=(" - WARNING - The model and loaded state dict do not match exactly",),
    ),
    Signature(
        pattern=r"^\s*size mismatch for (?P<name>\S+): copying a param of (?P<have>torch\.Size\(\[\d.{0,60}?\)) from checkpoint, {1,2}(?:, )?where the shape is (?P<want>torch\.Size\(\[\d.{0,60}?\))",
        source="torch 0.4 nn/modules/module.py",
        message="`{name}` is {have} in the checkpoint and {want} in the model",
        hint="build the model with the sizes (classes, vocabulary, layers) that it was saved with, or leave these weights out",
        examples=(
            "size mismatch for head.weight: copying a param of torch.Size([7, 256]) from checkpoint, where the shape is torch.Size([5, 256]) in current model.",
        ),
        not_examples=("size mismatch for head.weight: copying a param of torch.Size",),
    ),
    Signature(
        pattern="You set `ignore_mismatched_sizes` to `False`, thus raising an error",
        source="transformers 5.0-5.23.0 utils/loading_report.py",
        message="Tensors in the checkpoint and in the model differ in shape",
        hint="load it with the config that was saved next to the weights; the report above the error lists the shapes. To change the vocabulary, call `resize_token_embeddings` after loading",
        examples=(
            "RuntimeError: You set `ignore_mismatched_sizes` to `False`, thus raising an error. For details look at the above report!",
        ),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"^(?:in )?current model is torch\.Size",
        source="torch 0.4-2.13 nn/modules/module.py",
        examples=(
            "current model is torch.Size([16, 4]).",
            "in current model is torch.Size([32, 8]).",
        ),
        not_examples=("the shape in current model is torch.Size([16, 4])",),
        near=("lora", "adapter", "deepspeed"),
        message="A weight has different shapes in the checkpoint and in the model",
        hint="build the model with the configuration of the checkpoint (vocabulary, "
        "hidden size, LoRA rank)",
    ),
    Signature(
        pattern="Error opening \\\"zarr\\\" driver|rror reading local file \\\"|No ZeRO files found|No such file or directory: '[^']{0,300}\\.distcp'",
        source=(
            "tensorstore 0.1 driver/zarr, as megatron_core prints it; python 3.3-3.14 "
            "Objects/exceptions.c"
        ),
        examples=(
            'ValueError: Error opening "zarr" driver: Error reading local file "w/.zarray"',
            "FileNotFoundError: [Errno 2] No such file or directory: 'ckpt/__1_0.distcp'",
            "No ZeRO files found",
        ),
        not_examples=("FileNotFoundError: [Errno 2] No such file or directory: 'g++'",),
    ),
    Signature(
        pattern="^KeyError: '(?P<key>(?:model|optimizer|lr_scheduler|ema|net)?_?state_dict|optimizer_states?|global_step|pytorch-lightning_version|hyper_parameters|ds_version|model|module)'",
        source="python 3.3-3.14 Objects/dictobject.c",
        message="The file that was loaded has no entry `{key}`: it was saved by another program or in a different format",
        hint="compare the keys of the loaded dictionary with those that the script reads",
        examples=(
            "KeyError: 'state_dict'",
            "KeyError: 'optimizer_state_dict'",
            "KeyError: 'optimizer_state'",
            "KeyError: 'global_step'",
            "KeyError: 'pytorch-lightning_version'",
            "KeyError: 'hyper_parameters'",
            "KeyError: 'ds_version'",
            "KeyError: 'model'",
            "KeyError: 'module'",
        ),
        level=Level.HINT,
        near=(
            "torch.load(",
            "load_checkpoint",
            "load_from_checkpoint",
            "load_state_dict",
            "checkpoint[",
            "ckpt[",
        ),
    ),
    Signature(
        pattern=r"not a valid (?:DeepSpeed )?checkpoint\b|Can't get attribute '\w{1,80}' on <module 'deepspeed",
        source="lightning 1.2-2.6 strategies/deepspeed.py; python 3.3-3.14 Modules/_pickle.c",
        examples=(
            "FileNotFoundError: The provided path is not a valid DeepSpeed checkpoint: out/last.ckpt",
            "AttributeError: Can't get attribute 'ZeroStageEnum' on <module 'deepspeed.runtime.zero' from 'x'>",
        ),
        not_examples=(
            "get attribute 'ZeroStageEnum' on <module 'deepspeed.runtime.zero' from 'x'>",
        ),
    ),
    Signature(
        pattern=r"[Gg]lobal shape mismatch for loaded \(",
        source="megatron_core 0.5-0.16 dist_checkpointing/strategies/torch.py",
        examples=(
            "Global shape mismatch for loaded ((64, 8)) and expected ((32, 8)) tensor for key a.weight",
            "CheckpointingException: Global shape mismatch for loaded (torch.Size([4])) and expected ((8,)) tensor",
        ),
        message="A weight has different shapes in the checkpoint and in the model",
        hint="build the model with the configuration of the checkpoint (vocabulary, "
        "hidden size, LoRA rank)",
    ),
    Signature(
        pattern=r"Trying to set a tensor of shape (?P<have>torch\.Size\(\[(?![01]\b)\d.{0,60}?\)) in \x22(?P<name>[^\x22]{1,200})\x22 \(which has shape (?P<want>torch\.Size\(\[(?![01]\b)\d.{0,60}?\))\), this looks? incorrect",
        source="accelerate 0.23-1.15 utils/modeling.py",
        message="The model's {name} has the shape {want}, and the checkpoint's {have}",
        hint="load the checkpoint with the config that it was saved with, or resize the model's embeddings first",
        examples=(
            'ValueError: Trying to set a tensor of shape torch.Size([128256, 4096]) in "weight" (which has shape torch.Size([128264, 4096])), this look incorrect.',
            'ValueError: Trying to set a tensor of shape torch.Size([128256, 4096]) in "weight" (which has shape torch.Size([128264, 4096])), this looks incorrect.',
        ),
        not_examples=(
            'ValueError: Trying to set a tensor of shape torch.Size([128256, 4096]) in "weight" (which has shape torch.Size([0])), this looks incorrect.',
        ),
        level=Level.STRONG,
    ),
)
