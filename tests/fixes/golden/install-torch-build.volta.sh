# install-torch-build: torch 2.11 for CUDA 12.6 from `https://download.pytorch.org/whl/cu126`
# because GPU 0 (Tesla V100-SXM2-32GB) has capability 7.0, but torch 2.11.0 has code for sm_75, sm_80, sm_86, sm_90, sm_100, sm_120, compute_120
# because the build for CUDA 12.6 is the nearest for driver 580.95.05 and GPUs of capability 7.0
(set -e
# torch for CUDA 12.6, which driver 580.95.05 and GPUs of capability 7.0 serve
/e/bin/python -m pip install --no-input --force-reinstall torch==2.11.0 --index-url https://download.pytorch.org/whl/cu126
)
