# install-cuda-toolkit: CUDA 13.0 toolkit for torch 2.11.0 in `/e/lib/python3.11/site-packages/nvidia/cu13`
# because pip has the CUDA 13.0.2 toolkit as wheels (`--in-place`)
(set -e
# what torch does not bring, into the environment itself (`--in-place`)
PIP_USER=0 /e/bin/python -m pip install --no-input --no-deps nvidia-cuda-cccl==13.0.85 nvidia-cuda-crt==13.0.88 nvidia-cuda-nvcc==13.0.88 nvidia-curand==10.4.0.35 nvidia-nvvm==13.0.88
# the names that a linker looks for
for library in /e/lib/python3.11/site-packages/nvidia/cu13/lib/lib*.so.*; do
  [ ! -e "$library" ] || [ -e "${library%%.so.*}.so" ] ||
    ln -s "${library##*/}" "${library%%.so.*}.so"
done
# where DeepSpeed's builds look
mkdir -p /e/lib/python3.11/site-packages/nvidia/cu13
ln -sfn lib /e/lib/python3.11/site-packages/nvidia/cu13/lib64
# what the steps that follow and the proof run with
export CUDA_HOME=/e/lib/python3.11/site-packages/nvidia/cu13
export PATH=/e/lib/python3.11/site-packages/nvidia/cu13/bin:"$PATH"
# the same variables for the shell that starts the job
mkdir -p /e/opt/dsdoctor/env.d
cat > /e/opt/dsdoctor/env.d/install-cuda-toolkit.sh <<'DSDOCTOR_END'
# written by `dsdoctor fix install-cuda-toolkit`; `dsdoctor fix --undo` removes it
export CUDA_HOME='/e/lib/python3.11/site-packages/nvidia/cu13'
case ":$PATH:" in *:'/e/lib/python3.11/site-packages/nvidia/cu13/bin':*) ;; *) PATH='/e/lib/python3.11/site-packages/nvidia/cu13/bin'":$PATH" ;; esac; export PATH
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
