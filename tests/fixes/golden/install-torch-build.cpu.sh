# install-torch-build: install torch 2.15 for the CPU from `https://download.pytorch.org/whl/cpu`
# because torch is not installed in the venv `/e`
# because this machine has no GPU
(set -e
# torch for the CPU
/e/bin/python -m pip install --no-input --force-reinstall 'torch==2.15.*' --index-url https://download.pytorch.org/whl/cpu
)
