"""Modules that training scripts import, and the packages that provide them (PyPI, read 2026-11-29).

Left out are names that a project may well give to a module of its own (`clip`, `fire`, `utils`), and
packages that have a condition of their own.
"""

from __future__ import annotations


def _same(names: str) -> dict[str, str]:
    """Packages whose module has their name, but for the hyphens."""
    return {name.replace("-", "_"): name for name in names.split()}


#: By what they are for: one signature each.
GROUPS: tuple[dict[str, str], ...] = (
    # training
    {
        **_same(
            "accelerate datasets diffusers einops evaluate galore-torch gymnasium huggingface-hub"
            " lightning liger-kernel omegaconf optimum peft pytorch-lightning safetensors"
            " schedulefree tensordict timm tokenizers torchdata torchmetrics transformers trl"
            " tyro webdataset"
        ),
        "hydra": "hydra-core",
        "streaming": "mosaicml-streaming",
    },
    # text
    {
        **_same(
            "ftfy gensim jieba math-verify nltk opencc pypinyin rouge-score sacrebleu sacremoses"
            " sentence-transformers sentencepiece spacy tiktoken"
        ),
        "bert_score": "bert-score",
        "bs4": "beautifulsoup4",
        "editdistance": "editdistance",
        "lm_eval": "lm-eval",
        "rouge_chinese": "rouge-chinese",
        "Levenshtein": "Levenshtein",
    },
    # images, video, sound, graphs
    {
        **_same(
            "albumentations decord imageio kornia librosa lpips nibabel open3d pycocotools"
            " qwen-vl-utils soundfile trimesh"
        ),
        "PIL": "pillow",
        "SimpleITK": "SimpleITK",
        "av": "av",
        "cv2": "opencv-python",
        "monai": "monai",
        "open_clip": "open-clip-torch",
        "skimage": "scikit-image",
        "torch_geometric": "torch-geometric",
    },
    # tables, files, services
    {
        **_same(
            "boto3 fire gcsfs h5py jsonlines lmdb matplotlib modelscope numba onnx onnxruntime"
            " openai orjson pandas plotly pyarrow s3fs scipy seaborn ujson"
        ),
        "dotenv": "python-dotenv",
        "faiss": "faiss-cpu",
        "sklearn": "scikit-learn",
        "yaml": "PyYAML",
    },
    # what is logged, and shown
    {
        **_same(
            "clearml easydict fvcore iopath ipdb loguru mlflow neptune prettytable swanlab"
            " tabulate tensorboard termcolor tqdm wandb yacs"
        ),
        "comet_ml": "comet-ml",
        "cpuinfo": "py-cpuinfo",
        "tensorboardX": "tensorboardX",
        "torchinfo": "torchinfo",
    },
)
#: All of them, for what a script imports.
PACKAGES: dict[str, str] = {name: package for group in GROUPS for name, package in group.items()}
#: Those whose setup imports torch: an isolated build of them fails (2026-11-28).
BUILT = {
    "causal_conv1d": "causal-conv1d",
    "flash_attn": "flash-attn",
    "mamba_ssm": "mamba-ssm",
    "torch_scatter": "torch-scatter",
    "transformer_engine": "transformer-engine[pytorch]",
}
#: Modules whose absence is not looked for in logs: a project, or another condition, may own the name.
NOT_IN_LOGS = frozenset({"av", "evaluate", "fire", "streaming"})
