"""Messages of `transformers-deepspeed-incompatible`, one signature for each.

Over 400 lines because it is a table.
"""

from __future__ import annotations

from dsdoctor.api import Level, Signature

#: What the engine wraps has it, not the engine.
_LIKE_THE_MODEL = "The DeepSpeed engine is used like the model that it wraps"
_USE_MODULE = (
    "upgrade transformers, trl and peft; in a script of your own, use `engine.module` for what belongs"
    " to the model"
)
_TOO_OLD = "This DeepSpeed is too old: its engine does not have what is called"
_UPGRADE = "upgrade DeepSpeed: `python -m pip install -U deepspeed`"

SIGNATURES = (
    Signature(
        pattern=r"No module named 'transformers\.(?:deepspeed|integrations\.deepspeed)",
        source="python 3.3-3.14 Lib/importlib/_bootstrap.py",
        examples=(
            "ModuleNotFoundError: No module named 'transformers.deepspeed'",
            "No module named 'transformers.integrations.deepspeed",
        ),
        level=Level.STRONG,
        masks=("dependency-version-conflict",),
    ),
    Signature(
        pattern=r"cannot import name '\w+' from 'transformers\.(?:deepspeed|integrations)",
        source="python 3.7-3.14 Python/ceval.c import_from",
        examples=(
            "ImportError: cannot import name 'HfDeepSpeedConfig' from 'transformers.deepspeed' (/opt/env/lib/python3.10/site-packages/transformers/deepspeed.py)",
            "cannot import name 'name' from 'transformers.integrations",
        ),
        not_examples=(
            "import name 'HfDeepSpeedConfig' from 'transformers.deepspeed' (/opt/env/lib/python3.10/site-packages/transformers/deepspeed.py)",
        ),
        level=Level.STRONG,
        masks=("dependency-version-conflict",),
    ),
    Signature(
        # what the Trainer of transformers 4.32 to 4.39 passes, in the order of the call
        pattern=r"\bAccelerator\.__init__\(\) got an unexpected keyword argument '(?P<argument>dispatch_batches|even_batches|use_seedable_sampler)'",
        source="accelerate 0.34.2 and 1.0.1 accelerator.py; transformers 4.32-4.39 trainer.py (wheels, and tried with 1.15.0, 2026-11-30)",
        message="accelerate 1.0 and newer do not take `{argument}`, which the Trainer of transformers before 4.40 passes",
        hint="run `python -m pip install 'accelerate<1'`, or upgrade transformers to 4.40 or newer; in your own code, pass it in a `DataLoaderConfiguration`",
        examples=(
            "TypeError: Accelerator.__init__() got an unexpected keyword argument 'dispatch_batches'",
            "[rank0]: TypeError: Accelerator.__init__() got an unexpected keyword argument 'even_batches'",
            "TypeError: Accelerator.__init__() got an unexpected keyword argument 'use_seedable_sampler'",
        ),
        not_examples=(
            "TypeError: MyAccelerator.__init__() got an unexpected keyword argument 'dispatch_batches'",
        ),
        level=Level.STRONG,
        masks=("dependency-version-conflict",),
    ),
    Signature(
        pattern=r"\bAccelerator\.unwrap_model\(\) got an unexpected keyword argument 'keep_torch_compile'",
        source="accelerate 1.2.1 and 1.3.0 accelerator.py; transformers 4.52-5.24 trainer.py (wheels, and tried, 2026-11-30)",
        message="The Trainer of transformers 4.52 and newer needs accelerate 1.3 or newer",
        hint="run `python -m pip install -U 'accelerate>=1.3.0'`, or `python -m pip install 'transformers<4.52'`",
        examples=(
            "TypeError: Accelerator.unwrap_model() got an unexpected keyword argument 'keep_torch_compile'",
        ),
        not_examples=(
            "TypeError: OurAccelerator.unwrap_model() got an unexpected keyword argument 'keep_torch_compile'",
        ),
        level=Level.STRONG,
        masks=("dependency-version-conflict",),
    ),
    Signature(
        # the call of `set_device` on the module of the rank's device, in `PartialState`
        pattern=r"module 'torch\.cpu' has no attribute 'set_device'",
        source="accelerate 0.32.1 and 0.33.0 state.py; torch 2.1.2 and 2.3.1 cpu/__init__.py (tried with 1.15.0, 2026-11-30)",
        message="On CPUs, accelerate 0.33 and newer need `torch.cpu.set_device`, which torch 2.1 does not have",
        hint="upgrade torch to 2.3 or newer, or run `python -m pip install 'accelerate<0.33'`; a job on GPUs that ends here does not see its GPUs",
        examples=(
            "AttributeError: module 'torch.cpu' has no attribute 'set_device'. Did you mean: '_device'?",
        ),
        level=Level.STRONG,
        masks=("dependency-version-conflict", "deepspeed-torch-incompatible"),
    ),
    Signature(
        # of a function that took no device before torch 2.4
        pattern=r"\bis_autocast_enabled\(\) takes no arguments \(1 given\)",
        source="torch 2.3.1 and 2.4.1 torch/csrc/autograd/init.cpp; transformers 5.0.0 utils/generic.py (tried with torch 2.3.1, 2026-11-30)",
        message="`torch.is_autocast_enabled` takes a device since torch 2.4, and the caller passes one: transformers 5 needs torch 2.4 or newer",
        hint="upgrade torch to 2.4 or newer, or run `python -m pip install 'transformers<5'`; if another package calls it, install an older release of that",
        examples=(
            "[rank0]: TypeError: torch.is_autocast_enabled() takes no arguments (1 given)",
            "TypeError: is_autocast_enabled() takes no arguments (1 given)",
        ),
        level=Level.STRONG,
    ),
    Signature(
        # later ones allow what NumPy's state consists of; the sentence is that of torch 2.6
        pattern=r"Unsupported global: GLOBAL numpy\._?core\.multiarray\._reconstruct\b",
        source="torch 2.6-2.15 _weights_only_unpickler.py; transformers 4.46.3 and 4.47.1 trainer.py (tried with torch 2.6.0, 2026-11-30)",
        message="The Trainer of transformers before 4.47 does not resume with torch 2.6 or newer: `torch.load` refuses NumPy's state in `rng_state.pth`",
        hint="run `python -m pip install -U 'transformers>=4.47'`, or delete the files `rng_state*.pth` of the checkpoint: the Trainer then goes on with other random numbers",
        examples=(
            "[rank0]: \tWeightsUnpickler error: Unsupported global: GLOBAL numpy._core.multiarray._reconstruct was not an allowed global by default.",
        ),
        not_examples=(
            "WeightsUnpickler error: Unsupported global: GLOBAL numpy.core.multiarray._reconstructed was not an allowed global by default.",
        ),
        near=("_load_rng_state",),
        requires=("In PyTorch 2.6, we changed the default",),
        level=Level.STRONG,
        masks=("dependency-version-conflict", "weights-file-corrupt"),
    ),
    Signature(
        pattern=r"\bUnpicklingError: Weights only load failed",
        source="torch 2.0-2.5 serialization.py; transformers 4.50.3 and 4.51.3 trainer.py (tried with torch 2.3.1, 2026-11-30)",
        message="The Trainer of transformers 4.51 resumes only with torch 2.6 or newer: it lets an older torch read only weights, and `rng_state.pth` contains NumPy's state",
        hint="run `python -m pip install -U 'torch>=2.6'`, or `python -m pip install 'transformers>=4.47,<4.51'`",
        examples=("_pickle.UnpicklingError: Weights only load failed. Re-running `torch.load`",),
        not_examples=("OurUnpicklingError: Weights only load failed",),
        requires=("_load_rng_state",),  # the error index knows the message, not who calls
        near=("_load_rng_state",),
        unless=("In PyTorch 2.6, we changed the default",),
        level=Level.STRONG,
        masks=("dependency-version-conflict", "weights-file-corrupt"),
    ),
    Signature(
        # transformers goes on without its models, which it replaces by classes that only raise
        pattern=r"\bDisabling PyTorch because PyTorch >= (?P<needed>\d[\d.]{0,8}\d) is required but found (?P<have>\d[\w.+]{0,40})",
        source="transformers 4.52-5.24 utils/import_utils.py",
        message="torch {have} is installed, but this transformers needs {needed} or newer, and goes on without its models and its Trainer",
        hint="run `python -m pip install -U 'torch>={needed}'`, or install an older transformers: `transformers<4.52` for torch before 2.1, `<4.56` for 2.1, `<5.0` for 2.2 and 2.3, `<5.15` for 2.4, `<5.20` for 2.5",
        examples=(
            "[transformers] Disabling PyTorch because PyTorch >= 2.6 is required but found 2.3.1+cu121",
            "Disabling PyTorch because PyTorch >= 2.1 is required but found 2.0.1",
        ),
        not_examples=("Disabling PyTorch because PyTorch >= ? is required but found 2.3.1",),
        level=Level.STRONG,
        goes_on=True,
        masks=("dependency-version-conflict", "script-import-broken"),
    ),
    Signature(
        pattern=r"NameError: name '(?P<name>\w{1,80})' is not defined",
        source="transformers 4.52-5.24: what a file uses of a torch that is_torch_available() rejects",
        message="transformers did not import `{name}`, because torch is older than it supports",
        hint="upgrade torch to the release that the line `Disabling PyTorch because …` asks for, or install an older transformers: `transformers<4.52` for torch before 2.1, `<4.56` for 2.1, `<5.0` for 2.2 and 2.3, `<5.15` for 2.4, `<5.20` for 2.5",
        examples=("NameError: name 'LRScheduler' is not defined",),
        not_examples=("NameError: name 'my-thing' is not defined",),
        requires=("Disabling PyTorch because PyTorch >=",),
        near=("/transformers/", "\\transformers\\"),
        importing=True,
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"module 'torch\.utils\._pytree' has no attribute 'register_pytree_node'|cannot import name 'register_pytree_node' from 'torch\.utils\._pytree'",
        source="torch 2.1.2 and 2.2.2 utils/_pytree.py; transformers 4.55.4 and 4.56.2 utils/generic.py (tried with 4.57.6, 2026-11-30)",
        message="transformers 4.56 and newer need torch 2.2 or newer",
        hint="upgrade torch, or run `python -m pip install 'transformers<4.56'` (with torch before 2.1, `'transformers<4.52'`)",
        examples=(
            "AttributeError: module 'torch.utils._pytree' has no attribute 'register_pytree_node'. Did you mean: '_register_pytree_node'?",
            "ImportError: cannot import name 'register_pytree_node' from 'torch.utils._pytree' (/x/torch/utils/_pytree.py)",
        ),
        near=("/transformers/", "\\transformers\\"),
        level=Level.STRONG,
        masks=("dependency-version-conflict",),
    ),
    Signature(
        pattern=r"(?:Accelerator(?!\.__init__\(\) got an unexpected keyword argument '(?:dispatch_b|even_b|use_seed)|\.unwrap_model\(\) got an unexpected keyword argument 'keep_torch_compile')|DeepSpeedPlugin|AcceleratorState|HfTrainerDeepSpeedConfig|DeepSpeedEngine|deepspeed_init)(?:\.\w+)?\(\) got an unexpected",
        source="python 3.3-3.14 Python/ceval.c, for arguments that another release takes",
        examples=(
            "TypeError: Accelerator.__init__() got an unexpected keyword argument 'logging_dir'",
            "TypeError: DeepSpeedEngine.backward() got an unexpected keyword argument 'sync_gradients'",
            "DeepSpeedPlugin() got an unexpected",
            "AcceleratorState() got an unexpected",
            "HfTrainerDeepSpeedConfig() got an unexpected",
            "TypeError: deepspeed_init() got an unexpected keyword argument 'resume_from_checkpoint'",
        ),
        not_examples=(
            "TypeError: LoraConfig.__init__() got an unexpected keyword argument 'exclude_modules'",
        ),
        level=Level.STRONG,
        masks=("dependency-version-conflict",),
    ),
    Signature(
        pattern=r"TypeError: __init__\(\) got an unexpected keyword argument '\w+'",
        source="CPython 3.8-3.9, which do not name the class; transformers 4.30-4.45 trainer.py",
        examples=("TypeError: __init__() got an unexpected keyword argument 'even_batches'",),
        not_examples=("TypeError: __init__() got an unexpected keyword argument ''",),
        level=Level.STRONG,
        near=("self.accelerator = Accelerator(",),
        masks=("dependency-version-conflict",),
    ),
    Signature(
        pattern=r"'(?:DummyOptim|DummyScheduler|DeepSpeedPlugin|HfTrainerDeepSpeedConfig|HfDeepSpeedConfig|(?:FP16_|BF16_)?DeepSpeedZeroOptimizer\w*|DeepSpeedCPUAdam|DeepSpeedOptimizerWrapper|DeepSpeedEngineWrapper)' object has no attribute(?! '(?:ds_opt|ipg_))",
        source="deepspeed 0.14.5-0.19.8 runtime/engine.py",
        examples=(
            "AttributeError: 'DeepSpeedZeroOptimizer_Stage3' object has no attribute 'train'",
            "AttributeError: 'DummyOptim' object has no attribute 'step'",
            "'DummyScheduler' object has no attribute",
            "AttributeError: 'DeepSpeedPlugin' object has no attribute 'select'",
            "'HfTrainerDeepSpeedConfig' object has no attribute",
            "'HfDeepSpeedConfig' object has no attribute",
            "'DeepSpeedCPUAdam' object has no attribute",
            "'DeepSpeedOptimizerWrapper' object has no attribute",
            "'DeepSpeedEngineWrapper' object has no attribute",
        ),
        not_examples=(
            "AttributeError: 'DeepSpeedCPUAdam' object has no attribute 'ds_opt_adam'",
            # DeepSpeed sets it in `engine.backward`, which a script that calls `loss.backward` skips
            "AttributeError: 'DeepSpeedZeroOptimizer' object has no attribute 'ipg_buffer'",
        ),
        level=Level.STRONG,
        masks=("dependency-version-conflict",),
    ),
    Signature(
        # names that some releases of accelerate have and others do not; one that none has is a
        # mistake of whoever reads it
        pattern=r"'Accelerator\w*' object has no attribute '(?:\w*(?:deepspeed|fp8|parallel|fsdp|lomo|dataloader|recipe_handler|device_mesh|tp_plugin)\w*|use_fp16|use_ipex|non_blocking|multi_device|should_save_model|profile)'",
        source="accelerate 0.27-1.15 accelerator.py, state.py: what their classes define",
        examples=(
            "AttributeError: 'Accelerator' object has no attribute 'deepspeed_config'",
            "AttributeError: 'Accelerator' object has no attribute 'parallelism_config'",
            "AttributeError: 'AcceleratorState' object has no attribute 'is_fsdp2'",
            "'Accelerator' object has no attribute 'use_ipex'",
            "'Accelerator' object has no attribute 'use_fp8'",
            "'Accelerator' object has no attribute 'fsdp_plugin'",
            "'Accelerator' object has no attribute 'lomo_backward'",
            "'Accelerator' object has no attribute 'dataloader_config'",
            "'Accelerator' object has no attribute 'fp8_recipe_handler'",
            "'Accelerator' object has no attribute 'torch_device_mesh'",
            "'Accelerator' object has no attribute 'torch_tp_plugin'",
            "'Accelerator' object has no attribute 'use_fp16'",
            "'Accelerator' object has no attribute 'non_blocking'",
            "'Accelerator' object has no attribute 'multi_device'",
            "'Accelerator' object has no attribute 'should_save_model'",
            "'Accelerator' object has no attribute 'profile'",
        ),
        not_examples=(
            "AttributeError: 'Accelerator' object has no attribute 'modle'",
            "AttributeError: 'AcceleratorState' object has no attribute 'my_rank'",
            "AttributeError: 'Accelerator' object has no attribute 'profiles'",
        ),
        level=Level.STRONG,
        masks=("dependency-version-conflict",),
    ),
    Signature(
        pattern=r"cannot import name '\w{0,40}(?:[dD]eep[sS]peed|DummyOptim|DummySched)\w{0,40}' from '(?:transformers|accelerate)[\w.]{0,80}'",
        source="huggingface_hub 2.4.0 utils/_runtime.py",
        examples=(
            "ImportError: cannot import name 'HfDeepSpeedConfig' from 'transformers.deepspeed' (/opt/env/lib/python3.10/site-packages/transformers/deepspeed.py)",
            "cannot import name 'nameDummyOptimname' from 'transformersname'",
            "cannot import name 'nameDummySchedname' from 'transformersname'",
            "cannot import name 'namedeepspeedname' from 'acceleratename'",
        ),
        not_examples=(
            "ImportError: cannot import name 'inf' from 'torch._six' (unknown location)",
        ),
        level=Level.STRONG,
        masks=("dependency-version-conflict",),
    ),
    Signature(
        pattern=r"No module named 'accelerate\.utils\.deepspeed",
        source="python 3.3-3.14 Lib/importlib/_bootstrap.py",
        examples=("No module named 'accelerate.utils.deepspeed",),
        level=Level.STRONG,
        masks=("dependency-version-conflict",),
    ),
    Signature(
        pattern=r"deepspeed_init\(\) (?:missing|takes)",
        source="python 3.3-3.14 Python/ceval.c",
        examples=(
            "deepspeed_init() missing",
            "deepspeed_init() takes",
        ),
        level=Level.STRONG,
        masks=("dependency-version-conflict",),
    ),
    Signature(
        pattern="property 'deepspeed_plugin' of",
        source="python 3.11-3.14 Objects/descrobject.c",
        examples=("property 'deepspeed_plugin' of",),
        level=Level.STRONG,
        masks=("dependency-version-conflict",),
    ),
    Signature(
        pattern="DeepSpeed version must be [<>]=",
        source="accelerate 0.27.2-1.15.0 accelerator.py, utils/dataclasses.py",
        examples=("ImportError: DeepSpeed version must be >= 0.6.5. Please update DeepSpeed.",),
        level=Level.STRONG,
        masks=("dependency-version-conflict",),
    ),
    Signature(
        pattern=r"deepspeed[<>=!]=?\S+ is required for a normal functioning",
        source="transformers 5.23.0 utils/versions.py",
        examples=(
            "ImportError: deepspeed>=0.9.3 is required for a normal functioning of this module, but found deepspeed==0.8.0.",
        ),
        not_examples=(
            "ImportError: accelerate>=0.26.0 is required for a normal functioning of this module, but found accelerate==0.21.0.",
        ),
        level=Level.STRONG,
        masks=("dependency-version-conflict",),
    ),
    Signature(
        pattern=r"'(?:DeepSpeed\w{0,20}|Pipeline)Engine' object has no attribute 'base_model_prefix'",
        source="deepspeed 0.5-0.19 runtime/engine.py __getattr__, torch 1.8-2.13 nn/modules/module.py",
        examples=(
            "'DeepSpeednameEngine' object has no attribute 'base_model_prefix'",
            "'PipelineEngine' object has no attribute 'base_model_prefix'",
        ),
        not_examples=("Engine' object has no attribute 'base_model_prefix' is fine",),
        level=Level.WEAK,
        message=_LIKE_THE_MODEL,
        hint=_USE_MODULE,
    ),
    Signature(
        pattern=r"'(?:DeepSpeed\w{0,20}|Pipeline)Engine' object has no attribute 'config_class'",
        source="deepspeed 0.5-0.19 runtime/engine.py __getattr__, torch 1.8-2.13 nn/modules/module.py",
        examples=(
            "'DeepSpeednameEngine' object has no attribute 'config_class'",
            "'PipelineEngine' object has no attribute 'config_class'",
        ),
        not_examples=("Engine' object has no attribute 'config_class' is fine",),
        level=Level.WEAK,
        message=_LIKE_THE_MODEL,
        hint=_USE_MODULE,
    ),
    Signature(
        pattern=r"'(?:DeepSpeed\w{0,20}|Pipeline)Engine' object has no attribute 'peft_config'",
        source="deepspeed 0.5-0.19 runtime/engine.py __getattr__, torch 1.8-2.13 nn/modules/module.py",
        examples=(
            "AttributeError: 'DeepSpeedEngine' object has no attribute 'peft_config'",
            "'PipelineEngine' object has no attribute 'peft_config'",
        ),
        not_examples=("AttributeError: 'SearchEngine' object has no attribute 'peft_config'",),
        level=Level.WEAK,
        message=_LIKE_THE_MODEL,
        hint=_USE_MODULE,
    ),
    Signature(
        pattern=r"'(?:DeepSpeed\w{0,20}|Pipeline)Engine' object has no attribute 'pretrained_model'",
        source="deepspeed 0.5-0.19 runtime/engine.py __getattr__, torch 1.8-2.13 nn/modules/module.py",
        examples=(
            "'DeepSpeednameEngine' object has no attribute 'pretrained_model'",
            "'PipelineEngine' object has no attribute 'pretrained_model'",
        ),
        not_examples=("Engine' object has no attribute 'pretrained_model' is fine",),
        level=Level.WEAK,
        message=_LIKE_THE_MODEL,
        hint=_USE_MODULE,
    ),
    Signature(
        pattern=r"'(?:DeepSpeed\w{0,20}|Pipeline)Engine' object has no attribute 'warnings_issued'",
        source="deepspeed 0.5-0.19 runtime/engine.py __getattr__, torch 1.8-2.13 nn/modules/module.py",
        examples=(
            "'DeepSpeednameEngine' object has no attribute 'warnings_issued'",
            "'PipelineEngine' object has no attribute 'warnings_issued'",
        ),
        not_examples=("Engine' object has no attribute 'warnings_issued' is fine",),
        level=Level.WEAK,
        message=_LIKE_THE_MODEL,
        hint=_USE_MODULE,
    ),
    Signature(
        pattern=r"'(?:DeepSpeed\w{0,20}|Pipeline)Engine' object has no attribute 'is_gradient_checkpointing'",
        source="deepspeed 0.5-0.19 runtime/engine.py __getattr__, torch 1.8-2.13 nn/modules/module.py",
        examples=(
            "'DeepSpeednameEngine' object has no attribute 'is_gradient_checkpointing'",
            "'PipelineEngine' object has no attribute 'is_gradient_checkpointing'",
        ),
        not_examples=("Engine' object has no attribute 'is_gradient_checkpointing' is fine",),
        level=Level.WEAK,
        message=_LIKE_THE_MODEL,
        hint=_USE_MODULE,
    ),
    Signature(
        pattern=r"'(?:DeepSpeed\w{0,20}|Pipeline)Engine' object has no attribute 'gradient_checkpointing_\w{1,20}'",
        source="deepspeed 0.5-0.19 runtime/engine.py __getattr__, torch 1.8-2.13 nn/modules/module.py",
        examples=(
            "'DeepSpeednameEngine' object has no attribute 'gradient_checkpointing_name'",
            "'PipelineEngine' object has no attribute 'gradient_checkpointing_name'",
        ),
        not_examples=("Engine' object has no attribute 'gradient_checkpointing_ is fine",),
        level=Level.WEAK,
        message=_LIKE_THE_MODEL,
        hint=_USE_MODULE,
    ),
    Signature(
        pattern=r"'(?:DeepSpeed\w{0,20}|Pipeline)Engine' object has no attribute 'get_base_model'",
        source="deepspeed 0.5-0.19 runtime/engine.py __getattr__, torch 1.8-2.13 nn/modules/module.py",
        examples=(
            "'DeepSpeednameEngine' object has no attribute 'get_base_model'",
            "'PipelineEngine' object has no attribute 'get_base_model'",
        ),
        not_examples=("Engine' object has no attribute 'get_base_model' is fine",),
        level=Level.WEAK,
        message=_LIKE_THE_MODEL,
        hint=_USE_MODULE,
    ),
    Signature(
        pattern=r"'(?:DeepSpeed\w{0,20}|Pipeline)Engine' object has no attribute 'push_to_hub'",
        source="deepspeed 0.5-0.19 runtime/engine.py __getattr__, torch 1.8-2.13 nn/modules/module.py",
        examples=(
            "'DeepSpeednameEngine' object has no attribute 'push_to_hub'",
            "'PipelineEngine' object has no attribute 'push_to_hub'",
        ),
        not_examples=("Engine' object has no attribute 'push_to_hub' is fine",),
        level=Level.WEAK,
        message=_LIKE_THE_MODEL,
        hint=_USE_MODULE,
    ),
    Signature(
        pattern=r"'(?:DeepSpeed\w{0,20}|Pipeline)Engine' object has no attribute 'save_pretrained'",
        source="deepspeed 0.5-0.19 runtime/engine.py __getattr__, torch 1.8-2.13 nn/modules/module.py",
        examples=(
            "AttributeError: 'DeepSpeedHybridEngine' object has no attribute 'save_pretrained'",
            "'PipelineEngine' object has no attribute 'save_pretrained'",
        ),
        not_examples=("Engine' object has no attribute 'save_pretrained' is fine",),
        level=Level.WEAK,
        message=_LIKE_THE_MODEL,
        hint=_USE_MODULE,
    ),
    Signature(
        pattern=r"'(?:DeepSpeed\w{0,20}|Pipeline)Engine' object has no attribute '_?hf_\w{1,30}'",
        source="deepspeed 0.5-0.19 runtime/engine.py __getattr__, torch 1.8-2.13 nn/modules/module.py",
        examples=(
            "'DeepSpeednameEngine' object has no attribute 'hf_name'",
            "'PipelineEngine' object has no attribute 'hf_name'",
        ),
        not_examples=("Engine' object has no attribute '_hf_ is fine",),
        level=Level.WEAK,
        message=_LIKE_THE_MODEL,
        hint=_USE_MODULE,
    ),
    Signature(
        pattern=r"'(?:DeepSpeed\w{0,20}|Pipeline)Engine' object has no attribute 'active_adapters?'",
        source="deepspeed 0.5-0.19 runtime/engine.py __getattr__, torch 1.8-2.13 nn/modules/module.py",
        examples=(
            "'DeepSpeednameEngine' object has no attribute 'active_adapter'",
            "'PipelineEngine' object has no attribute 'active_adapter'",
        ),
        not_examples=("Engine' object has no attribute 'active_adapter' is fine",),
        level=Level.WEAK,
        message=_LIKE_THE_MODEL,
        hint=_USE_MODULE,
    ),
    Signature(
        pattern=r"'(?:DeepSpeed\w{0,20}|Pipeline)Engine' object has no attribute 'is_loaded_in_\wbit'",
        source="deepspeed 0.5-0.19 runtime/engine.py __getattr__, torch 1.8-2.13 nn/modules/module.py",
        examples=(
            "'DeepSpeednameEngine' object has no attribute 'is_loaded_in_nbit'",
            "'PipelineEngine' object has no attribute 'is_loaded_in_nbit'",
        ),
        not_examples=("Engine' object has no attribute 'is_loaded_in_ is fine",),
        level=Level.WEAK,
        message=_LIKE_THE_MODEL,
        hint=_USE_MODULE,
    ),
    Signature(
        pattern=r"'(?:DeepSpeed\w{0,20}|Pipeline)Engine' object has no attribute 'no_sync'",
        source="deepspeed 0.5-0.19 runtime/engine.py __getattr__, torch 1.8-2.13 nn/modules/module.py",
        examples=(
            "'DeepSpeednameEngine' object has no attribute 'no_sync'",
            "'PipelineEngine' object has no attribute 'no_sync'",
        ),
        not_examples=("Engine' object has no attribute 'no_sync' is fine",),
        level=Level.WEAK,
        message=_TOO_OLD,
        hint=_UPGRADE,
    ),
    Signature(
        pattern=r"'(?:DeepSpeed\w{0,20}|Pipeline)Engine' object has no attribute 'offload_states'",
        source="deepspeed 0.5-0.19 runtime/engine.py __getattr__, torch 1.8-2.13 nn/modules/module.py",
        examples=(
            "'DeepSpeednameEngine' object has no attribute 'offload_states'",
            "'PipelineEngine' object has no attribute 'offload_states'",
        ),
        not_examples=("Engine' object has no attribute 'offload_states' is fine",),
        level=Level.WEAK,
        message=_TOO_OLD,
        hint=_UPGRADE,
    ),
    Signature(
        pattern=r"'(?:DeepSpeed\w{0,20}|Pipeline)Engine' object has no attribute '(?:set|is)_gradient_accumulation_boundary'",
        source="deepspeed 0.5-0.19 runtime/engine.py __getattr__, torch 1.8-2.13 nn/modules/module.py",
        examples=(
            "'DeepSpeednameEngine' object has no attribute 'set_gradient_accumulation_boundary'",
            "'PipelineEngine' object has no attribute 'set_gradient_accumulation_boundary'",
            "'DeepSpeednameEngine' object has no attribute 'is_gradient_accumulation_boundary'",
        ),
        not_examples=(
            "Engine' object has no attribute 'is_gradient_accumulation_boundary' is fine",
        ),
        level=Level.WEAK,
        message=_TOO_OLD,
        hint=_UPGRADE,
    ),
    Signature(
        pattern=r"'(?:DeepSpeed\w{0,20}|Pipeline)Engine' object has no attribute 'get_global_grad_norm'",
        source="deepspeed 0.5-0.19 runtime/engine.py __getattr__, torch 1.8-2.13 nn/modules/module.py",
        examples=(
            "'DeepSpeednameEngine' object has no attribute 'get_global_grad_norm'",
            "'PipelineEngine' object has no attribute 'get_global_grad_norm'",
        ),
        not_examples=("Engine' object has no attribute 'get_global_grad_norm' is fine",),
        level=Level.WEAK,
        message=_TOO_OLD,
        hint=_UPGRADE,
    ),
    Signature(
        pattern=r"'(?:DeepSpeed\w{0,20}|Pipeline)Engine' object has no attribute 'coalesce_grad_reduction'",
        source="deepspeed 0.5-0.19 runtime/engine.py __getattr__, torch 1.8-2.13 nn/modules/module.py",
        examples=(
            "'DeepSpeednameEngine' object has no attribute 'coalesce_grad_reduction'",
            "'PipelineEngine' object has no attribute 'coalesce_grad_reduction'",
        ),
        not_examples=("Engine' object has no attribute 'coalesce_grad_reduction' is fine",),
        level=Level.WEAK,
        message=_TOO_OLD,
        hint=_UPGRADE,
    ),
    Signature(
        pattern="object has no attribute '(?:hf_deepspeed_config|deepspeed_(?:plugin|engine|config|engine_wrapped)|trainer_config_finalize|trainer_config_process)'",
        source="python 3.3-3.14 Objects/object.c",
        examples=(
            "AttributeError: 'TrainingArguments' object has no attribute 'hf_deepspeed_config'",
            "AttributeError: 'AcceleratorState' object has no attribute 'deepspeed_plugin'",
            "object has no attribute 'trainer_config_finalize'",
            "object has no attribute 'trainer_config_process'",
        ),
        level=Level.STRONG,
        masks=("dependency-version-conflict",),
    ),
    Signature(
        pattern=r"'\w*(?:Trainer|Accelerator\w*|Arguments)' object has no attribute '\w*deepspeed\w*'|(?!'DeepSpeedConfig')'(?:Hf\w*)?Deep[Ss]peed(?!Engine'|CPUAdam')\w*' object has no attribute '(?!ds_opt|ipg_)",
        source="python 3.3-3.14 Objects/object.c",
        examples=(
            "AttributeError: 'CustomTrainer' object has no attribute 'is_deepspeed_enabled'",
            "AttributeError: 'DeepSpeedGPTInference' object has no attribute 'config'",
            "AttributeError: 'DeepSpeedStrategy' object has no attribute '_deepspeed_engine'",
        ),
        not_examples=(
            "AttributeError: 'DeepSpeedEngine' object has no attribute 'generate'",
            "AttributeError: 'Net' object has no attribute 'deepspeed'",
            # its own class, which nothing else subclasses or fills
            "AttributeError: 'DeepSpeedConfig' object has no attribute 'fused_step_mode'",
        ),
        masks=("dependency-version-conflict",),
    ),
    Signature(
        pattern=r"\b(?:Warmup\w*LR|OneCycle|LRRangeTest|Deep[Ss]peed\w+|Fused(?:Adam|Lamb|Lion)|DeepSpeedZeroOptimizer\w*|FP16_\w+Optimizer|Init)(?:\.\w+)?\(\) (?:got an unexpected keyword argument|missing \d+ required (?:positional|keyword-only)|takes \d+ positional|takes from \d+ to \d+ positional)",
        source="python 3.3-3.14 Python/ceval.c",
        examples=(
            "TypeError: WarmupDecayLR.step() got an unexpected keyword argument 'increment'",
            "TypeError: DeepSpeedCPUAdam.__init__() got an unexpected keyword argument 'foreach'",
            "TypeError: DeepSpeedZeroConfig.__init__() takes 1 positional argument but 2 were given",
            "OneCycle() got an unexpected keyword argument",
            "LRRangeTest() got an unexpected keyword argument",
            "TypeError: FusedAdam.__init__() got an unexpected keyword argument 'learning_rate'",
            "DeepSpeedZeroOptimizername() got an unexpected keyword argument",
            "FP16_nameOptimizer() got an unexpected keyword argument",
            "Init() got an unexpected keyword argument",
            "WarmupnameLR() missing 7 required positional",
            "WarmupnameLR() takes from 7 to 7 positional",
        ),
        not_examples=("TypeError: Net.forward() got an unexpected keyword argument 'mask'",),
    ),
    Signature(
        pattern="Error: .{0,20}make sure to properly initialize your accelerator",
        source="accelerate 1.15.0 state.py",
        examples=(
            "ValueError: Please make sure to properly initialize your accelerator via `accelerator = Accelerator()` before",
            "[rank1]: ValueError: Please make sure to properly initialize your accelerator via `accelerator = Accelerator()`",
        ),
        not_examples=("make sure to properly initialize your accelerator first, says the guide",),
        level=Level.WEAK,
        near=("AcceleratorState().deepspeed_plugin", "accelerate/accelerator.py"),
    ),
)
