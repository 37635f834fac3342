# install-cuda-toolkit: CUDA 13.0 toolkit for torch 2.11.0 in `/e/opt/dsdoctor/cuda-13.0/nvidia/cu13`
# because pip has the CUDA 13.0.2 toolkit as wheels, and torch brings the rest
(set -e
# the parts of `cuda-toolkit==13.0.2` that torch does not bring; no installed package changes
PIP_USER=0 /e/bin/python -m pip install --no-input --target /e/opt/dsdoctor/cuda-13.0 --no-deps nvidia-cuda-cccl==13.0.85 nvidia-cuda-crt==13.0.88 nvidia-cuda-nvcc==13.0.88 nvidia-curand==10.4.0.35 nvidia-nvvm==13.0.88
# the headers that torch's own wheels hold
mkdir -p /e/opt/dsdoctor/cuda-13.0/nvidia/cu13/include
cp -rsn /e/lib/python3.11/site-packages/nvidia/cu13/include/. /e/opt/dsdoctor/cuda-13.0/nvidia/cu13/include/
# the libraries that torch's own wheels hold
mkdir -p /e/opt/dsdoctor/cuda-13.0/nvidia/cu13/lib
cp -rsn /e/lib/python3.11/site-packages/nvidia/cu13/lib/. /e/opt/dsdoctor/cuda-13.0/nvidia/cu13/lib/
# no wheel has the names that a linker looks for (`libcudart.so`)
for library in /e/opt/dsdoctor/cuda-13.0/nvidia/cu13/lib/lib*.so.*; do
  [ ! -e "$library" ] || [ -e "${library%%.so.*}.so" ] ||
    ln -s "${library##*/}" "${library%%.so.*}.so"
done
# where DeepSpeed's builds look
mkdir -p /e/opt/dsdoctor/cuda-13.0/nvidia/cu13
ln -sfn lib /e/opt/dsdoctor/cuda-13.0/nvidia/cu13/lib64
# what the steps that follow and the proof run with
export CUDA_HOME=/e/opt/dsdoctor/cuda-13.0/nvidia/cu13
export PATH=/e/opt/dsdoctor/cuda-13.0/nvidia/cu13/bin:"$PATH"
# the same variables for the shell that starts the job
mkdir -p /e/opt/dsdoctor/env.d
cat > /e/opt/dsdoctor/env.d/install-cuda-toolkit.sh <<'DSDOCTOR_END'
# written by `dsdoctor fix install-cuda-toolkit`; `dsdoctor fix --undo` removes it
export CUDA_HOME='/e/opt/dsdoctor/cuda-13.0/nvidia/cu13'
case ":$PATH:" in *:'/e/opt/dsdoctor/cuda-13.0/nvidia/cu13/bin':*) ;; *) PATH='/e/opt/dsdoctor/cuda-13.0/nvidia/cu13/bin'":$PATH" ;; esac; export PATH
DSDOCTOR_END
# reads every such file
mkdir -p /e/opt/dsdoctor
cat > /e/opt/dsdoctor/activate.sh <<'DSDOCTOR_END'
# read by the shell that starts a job: the repairs that dsdoctor made
for _dsdoctor_file in '/e/opt/dsdoctor'/env.d/*.sh; do
  if [ -r "$_dsdoctor_file" ]; then . "$_dsdoctor_file"; fi
done
unset _dsdoctor_file
DSDOCTOR_END
)
[ $? -eq 0 ] && . '/e/opt/dsdoctor/activate.sh'
