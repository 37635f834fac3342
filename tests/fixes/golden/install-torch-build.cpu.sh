# install-torch-build: install torch 2.15 for the CPU from `https://download.pytorch.org/whl/cpu`
# because torch is not installed in the venv `/e`
# because the build for the CPU is the closest one that supports an unknown driver
(set -e
# torch for the CPU
/e/bin/python -m pip install --no-input --force-reinstall 'torch==2.15.*' --index-url https://download.pytorch.org/whl/cpu
)
