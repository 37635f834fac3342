"""DeepSpeed's JSON: what it refuses, and how it says so."""

from __future__ import annotations

from ._bench import Bench, scenario
from ._scripts import config, train

COMBINATION = "ds-config-unsupported-combination"
KEY = "ds-config-invalid-key"
UNKNOWN_OPTIMIZER = "ds-config-unknown-optimizer"
UNKNOWN_SCHEDULER = "ds-config-unknown-scheduler"
UNREADABLE = "ds-config-unreadable"
WRONG_TYPE = "ds-config-wrong-type"
BATCH = "ds-config-batch-mismatch"


def _try(bench: Bench, text: str, *, script: str = "", ranks: int = 1) -> int:
    bench.write("ds_config.json", text)
    return bench.deepspeed(
        script or train(), "--deepspeed", "--deepspeed_config", "ds_config.json", ranks=ranks
    )


@scenario(BATCH, r"Check batch related parameters")
def config_batch_triangle(bench: Bench) -> int:
    """train_batch_size is not micro batch * accumulation * world size (two ranks)."""
    return _try(bench, config(train_batch_size=6, gradient_accumulation_steps=2), ranks=2)


@scenario(BATCH, r"Either train_batch_size or train_micro_batch_size_per_gpu")
def config_batch_none(bench: Bench) -> int:
    """No batch size at all."""
    return _try(
        bench, config(train_micro_batch_size_per_gpu=None, gradient_accumulation_steps=None)
    )


@scenario(BATCH, r"has to be greater than 0|Check batch")
def config_batch_smaller_than_world(bench: Bench) -> int:
    """train_batch_size 1 on two ranks: the derived micro batch is 0."""
    changes = {
        "train_batch_size": 1,
        "train_micro_batch_size_per_gpu": None,
        "gradient_accumulation_steps": None,
    }
    return _try(bench, config(changes), ranks=2)


@scenario(UNKNOWN_OPTIMIZER, r"(?i)optimizer")
def config_unknown_optimizer(bench: Bench) -> int:
    """An optimizer name that neither DeepSpeed nor torch knows."""
    return _try(bench, config(optimizer={"type": "AdamV", "params": {"lr": 1e-3}}))


@scenario(KEY, r"unexpected keyword argument")
def config_optimizer_parameter(bench: Bench) -> int:
    """An optimizer parameter with a typing error."""
    return _try(bench, config(optimizer={"type": "AdamW", "params": {"learning_rate": 1e-3}}))


@scenario(KEY, r"Extra inputs are not permitted")
def config_bad_zero_key(bench: Bench) -> int:
    """A misspelt key in zero_optimization."""
    return _try(bench, config(zero_optimization={"stage": 2, "overlap_com": True}))


@scenario(WRONG_TYPE, r"Input should be 0, 1, 2")
def config_zero_stage_4(bench: Bench) -> int:
    """There is no ZeRO-4."""
    return _try(bench, config(zero_optimization={"stage": 4}))


@scenario(KEY, r"[Dd]uplicate key")
def config_duplicate_key(bench: Bench) -> int:
    """The same key twice in the JSON."""
    return _try(
        bench,
        config().replace('"steps_per_print": 1', '"steps_per_print": 1,\n  "steps_per_print": 10'),
    )


@scenario(UNREADABLE, r"(?i)decode|Expecting|valid")
def config_not_json(bench: Bench) -> int:
    """The closing brace is missing."""
    return _try(bench, config().rstrip("}\n"))


@scenario("none", r"training done")
def ok_config_trailing_comma(bench: Bench) -> int:
    """A trailing comma is not JSON; DeepSpeed reads it all the same (hjson)."""
    return _try(bench, config().replace('"steps_per_print": 1', '"steps_per_print": 1,'))


@scenario(UNREADABLE, r"ds_config\.json|existing deepspeed config|FileNotFound")
def config_file_absent(bench: Bench) -> int:
    """--deepspeed_config names a file that does not exist."""
    return bench.deepspeed(train(), "--deepspeed", "--deepspeed_config", "ds_confg.json", ranks=1)


@scenario(COMBINATION, r"(?i)bf16|fp16")
def config_fp16_and_bf16(bench: Bench) -> int:
    """fp16 and bf16 both enabled."""
    return _try(bench, config(fp16={"enabled": True}, bf16={"enabled": True}))


@scenario(COMBINATION, r"(?i)untested ZeRO Optimizer|zero_allow_untested_optimizer")
def config_untested_zero_optimizer(bench: Bench) -> int:
    """ZeRO-1 with a client optimizer it was not tested with."""
    script = train().replace(
        "model_parameters=net.parameters()", "optimizer=torch.optim.RMSprop(net.parameters())"
    )
    return _try(bench, config(optimizer=None, zero_optimization={"stage": 1}), script=script)


@scenario(COMBINATION, r"(?i)ZeRO-Offload|offload")
def config_offload_foreign_optimizer(bench: Bench) -> int:
    """CPU offload with torch's own AdamW."""
    script = train().replace(
        "model_parameters=net.parameters()", "optimizer=torch.optim.AdamW(net.parameters())"
    )
    zero = {"stage": 2, "offload_optimizer": {"device": "cpu"}}
    return _try(bench, config(optimizer=None, zero_optimization=zero), script=script)


@scenario("ds-config-auto-values", r"can't multiply sequence by non-int of type 'str'")
def config_auto_batch(bench: Bench) -> int:
    """A Hugging Face config with "auto" batch sizes, used without the trainer."""
    return _try(
        bench, config(train_micro_batch_size_per_gpu="auto", gradient_accumulation_steps="auto")
    )


@scenario("none", r"training done")
def ok_config_auto_zero_bucket(bench: Bench) -> int:
    """reduce_bucket_size "auto" is silently taken for the default."""
    return _try(bench, config(zero_optimization={"stage": 2, "reduce_bucket_size": "auto"}))


@scenario("ds-config-auto-values", r"(?i)str|auto")
def config_auto_train_batch_size(bench: Bench) -> int:
    """All three batch sizes "auto"."""
    auto = dict.fromkeys(
        ("train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps"),
        "auto",
    )
    return _try(bench, config(auto))


@scenario("ds-config-auto-values", r"auto|str")
def config_auto_learning_rate(bench: Bench) -> int:
    """lr "auto" reaches the optimizer."""
    return _try(bench, config(optimizer={"type": "AdamW", "params": {"lr": "auto"}}))


@scenario("ds-config-auto-values", r"auto|'str'|float")
def config_auto_gradient_clipping(bench: Bench) -> int:
    """gradient_clipping "auto" reaches the step."""
    return _try(bench, config(gradient_clipping="auto", zero_optimization={"stage": 1}))


@scenario(COMBINATION, r"(?i)nvme", also_ok=("libaio-missing", KEY))
def config_nvme_without_path(bench: Bench) -> int:
    """NVMe offload without nvme_path (and on a machine without libaio)."""
    zero = {
        "stage": 3,
        "offload_param": {"device": "nvme"},
        "offload_optimizer": {"device": "nvme"},
    }
    return _try(bench, config(zero_optimization=zero))


@scenario("libaio-missing", r"(?i)async_io|libaio", also_ok=(COMBINATION,))
def config_nvme_without_libaio(bench: Bench) -> int:
    """NVMe offload with a path, but libaio-dev is not installed."""
    device = {"device": "nvme", "nvme_path": "/tmp/run/nvme"}
    return _try(bench, config(zero_optimization={"stage": 3, "offload_optimizer": device}))


@scenario(UNKNOWN_SCHEDULER, r"(?i)scheduler|lr_sched|WarmupCos")
def config_unknown_scheduler(bench: Bench) -> int:
    """A scheduler that does not exist."""
    return _try(bench, config(scheduler={"type": "WarmupCosine", "params": {}}))


@scenario(KEY, r"has been removed")
def config_removed_nebula(bench: Bench) -> int:
    """A block of a feature that this DeepSpeed release has dropped."""
    return _try(bench, config(nebula={"enabled": True, "persistent_storage_path": "/data/ckpt"}))


@scenario(KEY, r"has been removed")
def config_removed_elasticity(bench: Bench) -> int:
    """The elasticity block, dropped too."""
    return _try(
        bench,
        config(
            elasticity={"enabled": True, "max_train_batch_size": 64, "micro_batch_sizes": [2, 4]}
        ),
    )


@scenario(KEY, r"tensorboard.output_dir")
def config_misspelt_monitor_key(bench: Bench) -> int:
    """A misspelt key in the tensorboard section, a strict model too."""
    return _try(bench, config(tensorboard={"enabled": False, "output_dir": "logs"}))


@scenario(WRONG_TYPE, r"(?i)valid (integer|dictionary|boolean)|int_parsing|bool")
def config_wrong_type(bench: Bench) -> int:
    """A word where a boolean belongs."""
    return _try(bench, config(zero_optimization={"stage": 2, "contiguous_gradients": "sometimes"}))


@scenario(
    "cpu-only-torch", r"not supported on your device|fp16", also_ok=("no-gpu-visible", COMBINATION)
)
def config_fp16_on_cpu(bench: Bench) -> int:
    """fp16 asked for where DeepSpeed only found the CPU."""
    return _try(bench, config(fp16={"enabled": True}))


@scenario("training-diverged", r"(?i)nan")
def config_nan_loss_bf16(bench: Bench) -> int:
    """bf16 training whose loss is nan from the first step: skipped steps, exit code 0."""
    script = train(step="x = x * float('inf')")
    return _try(
        bench,
        config(bf16={"enabled": True}, zero_optimization={"stage": 2}),
        script=script,
        ranks=2,
    )


@scenario(COMBINATION, r"(?i)pipeline|zero|stage")
def config_pipeline_with_zero2(bench: Bench) -> int:
    """Pipeline parallelism with ZeRO-2."""
    before = "from deepspeed.pipe import PipelineModule\ndeepspeed.init_distributed()\n"
    before += "net = PipelineModule(layers=list(net.body), num_stages=1, loss_fn=torch.nn.functional.cross_entropy)"
    return _try(bench, config(zero_optimization={"stage": 2}), script=train(before=before))


@scenario("unrecognised", r"(?i)deepspeed_config|no config|config")
def config_argument_missing(bench: Bench) -> int:
    """--deepspeed without a config."""
    return bench.deepspeed(train(), "--deepspeed", ranks=1)
