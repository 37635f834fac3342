# install-deepspeed: install `deepspeed==0.19.8` for torch 2.5.1
# because `fused_adam` was pre-built for torch 2.4, but torch 2.5.1 is installed; and for CUDA 12.1, but torch has CUDA 12.4
(set -e
# the tools that DeepSpeed's setup needs
/e/bin/python -m pip install --no-input setuptools wheel packaging
# rebuild its ops for this torch
/e/bin/python -m pip install --no-input --force-reinstall --no-cache-dir --no-deps --no-build-isolation deepspeed==0.19.8
)
