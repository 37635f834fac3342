# install-torch-build: install torch 2.11 for CUDA 12.6 from `https://download.pytorch.org/whl/cu126`
# because GPU 0 (Tesla V100-SXM2-32GB) has capability 7.0, but torch 2.11.0 has code for sm_75, sm_80, sm_86, sm_90, sm_100, sm_120, compute_120
# because the build for CUDA 12.6 is the closest one that supports driver 580.95.05 and GPUs of capability 7.0
(set -e
# the torch build for CUDA 12.6 supports driver 580.95.05 and GPUs of capability 7.0
/e/bin/python -m pip install --no-input --force-reinstall torch==2.11.0 --index-url https://download.pytorch.org/whl/cu126
)
