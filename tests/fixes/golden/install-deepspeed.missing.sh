# install-deepspeed: install `deepspeed` for torch 2.5.1
# because `deepspeed` is not installed for `/e/bin/python`
(set -e
# the tools that DeepSpeed's setup needs
/e/bin/python -m pip install --no-input setuptools wheel packaging
# `deepspeed` is not installed for `/e/bin/python`
/e/bin/python -m pip install --no-input --no-build-isolation deepspeed
)
