# install-cuda-toolkit: use the CUDA 13.0 toolkit in `/e/opt/dsdoctor/cuda-13.0/nvidia/cu13` for torch 2.11.0
# because pip can install the CUDA 13.0.2 toolkit as wheels, and torch includes the rest
(set -e
# the parts of `cuda-toolkit==13.0.2` that torch does not install; no installed package changes
PIP_USER=0 /e/bin/python -m pip install --no-input --target /e/opt/dsdoctor/cuda-13.0 --no-deps nvidia-cuda-cccl==13.0.85 nvidia-cuda-crt==13.0.88 nvidia-cuda-nvcc==13.0.88 nvidia-curand==10.4.0.35 nvidia-nvvm==13.0.88
# the headers in torch's own wheels
mkdir -p /e/opt/dsdoctor/cuda-13.0/nvidia/cu13/include
cp -rsn /e/lib/python3.11/site-packages/nvidia/cu13/include/. /e/opt/dsdoctor/cuda-13.0/nvidia/cu13/include/
# the libraries in torch's own wheels
mkdir -p /e/opt/dsdoctor/cuda-13.0/nvidia/cu13/lib
cp -rsn /e/lib/python3.11/site-packages/nvidia/cu13/lib/. /e/opt/dsdoctor/cuda-13.0/nvidia/cu13/lib/
# names that the linker searches for (`libcudart.so`); the wheels do not contain them
for library in /e/opt/dsdoctor/cuda-13.0/nvidia/cu13/lib/lib*.so.*; do
  [ ! -e "$library" ] || [ -e "${library%%.so.*}.so" ] ||
    ln -s "${library##*/}" "${library%%.so.*}.so"
done
# DeepSpeed's builds search it
mkdir -p /e/opt/dsdoctor/cuda-13.0/nvidia/cu13
ln -sfn lib /e/opt/dsdoctor/cuda-13.0/nvidia/cu13/lib64
# the following steps and the proof use these variables
export CUDA_HOME=/e/opt/dsdoctor/cuda-13.0/nvidia/cu13
export PATH=/e/opt/dsdoctor/cuda-13.0/nvidia/cu13/bin":$PATH"
# sets them in the shell that starts the job
mkdir -p /e/opt/dsdoctor/env.d
cat > /e/opt/dsdoctor/env.d/install-cuda-toolkit.sh <<'DSDOCTOR_END'
# written by `dsdoctor fix install-cuda-toolkit`; `dsdoctor fix --undo` removes it
export CUDA_HOME='/e/opt/dsdoctor/cuda-13.0/nvidia/cu13'
case ":$PATH:" in *:'/e/opt/dsdoctor/cuda-13.0/nvidia/cu13/bin':*) ;; *) PATH='/e/opt/dsdoctor/cuda-13.0/nvidia/cu13/bin'":$PATH" ;; esac; export PATH
DSDOCTOR_END
# loads all such files
mkdir -p /e/opt/dsdoctor
cat > /e/opt/dsdoctor/activate.sh <<'DSDOCTOR_END'
# sourced by the shell that starts a job; sets the variables of `dsdoctor fix`
for _dsdoctor_file in '/e/opt/dsdoctor'/env.d/*.sh; do
  if [ -r "$_dsdoctor_file" ]; then . "$_dsdoctor_file"; fi
done
unset _dsdoctor_file
DSDOCTOR_END
)
[ $? -eq 0 ] && . '/e/opt/dsdoctor/activate.sh'
