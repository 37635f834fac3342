# install-cuda-toolkit: use the CUDA 13.0 toolkit in `/e/lib/python3.11/site-packages/nvidia/cu13` for torch 2.11.0
# because pip can install the CUDA 13.0.2 toolkit as wheels (`--in-place`)
(set -e
# the parts that torch does not install, into the environment itself (`--in-place`)
PIP_USER=0 /e/bin/python -m pip install --no-input --no-deps nvidia-cuda-cccl==13.0.85 nvidia-cuda-crt==13.0.88 nvidia-cuda-nvcc==13.0.88 nvidia-curand==10.4.0.35 nvidia-nvvm==13.0.88
# names that the linker searches for
for library in /e/lib/python3.11/site-packages/nvidia/cu13/lib/lib*.so.*; do
  [ ! -e "$library" ] || [ -e "${library%%.so.*}.so" ] ||
    ln -s "${library##*/}" "${library%%.so.*}.so"
done
# DeepSpeed's builds search it
mkdir -p /e/lib/python3.11/site-packages/nvidia/cu13
ln -sfn lib /e/lib/python3.11/site-packages/nvidia/cu13/lib64
# the following steps and the proof use these variables
export CUDA_HOME=/e/lib/python3.11/site-packages/nvidia/cu13
export PATH=/e/lib/python3.11/site-packages/nvidia/cu13/bin":$PATH"
# sets them in the shell that starts the job
mkdir -p /e/opt/dsdoctor/env.d
cat > /e/opt/dsdoctor/env.d/install-cuda-toolkit.sh <<'DSDOCTOR_END'
# written by `dsdoctor fix install-cuda-toolkit`; `dsdoctor fix --undo` removes it
export CUDA_HOME='/e/lib/python3.11/site-packages/nvidia/cu13'
case ":$PATH:" in *:'/e/lib/python3.11/site-packages/nvidia/cu13/bin':*) ;; *) PATH='/e/lib/python3.11/site-packages/nvidia/cu13/bin'":$PATH" ;; esac; export PATH
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
