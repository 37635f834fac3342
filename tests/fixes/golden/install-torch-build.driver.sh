# install-torch-build: install torch 2.11 for CUDA 12.8 from `https://download.pytorch.org/whl/cu128`
# because driver 535.104.05 supports up to CUDA 12.2, but torch 2.11.0 was built for CUDA 13.0
# because the build for CUDA 12.8 is the closest one that supports driver 535.104.05 and GPUs of capability 8.0
(set -e
# the torch build for CUDA 12.8 supports driver 535.104.05 and GPUs of capability 8.0
/e/bin/python -m pip install --no-input --force-reinstall torch==2.11.0 --index-url https://download.pytorch.org/whl/cu128
)
