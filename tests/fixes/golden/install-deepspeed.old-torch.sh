# install-deepspeed: install `deepspeed<0.18.3` for torch 2.1.2+cu121
# because ZeRO with deepspeed 0.19.8 needs torch 2.3 or newer, but torch 2.1.2+cu121 is installed
(set -e
# the tools that DeepSpeed's setup needs
/e/bin/python -m pip install --no-input 'setuptools<82,!=70.*' wheel packaging
# torch 2.1.2+cu121 needs deepspeed<0.18.3
/e/bin/python -m pip install --no-input --no-build-isolation 'deepspeed<0.18.3'
)
