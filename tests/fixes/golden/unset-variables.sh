# unset-variables: unset or correct `DS_SKIP_CUDA_CHECK`, `CUDA_LAUNCH_BLOCKING`, `NCCL_TIMEOUT`, `NCCL_ASYNC_ERROR_HANDLING` and `TORCH_NCCL_ASYNC_ERROR_HANDLING`
# because shell startup files are not edited: if one sets these variables, delete the line
(set -e
# the deepspeed launcher exports these variables to every node
mkdir -p /home/u
cat > /home/u/.deepspeed_env <<'DSDOCTOR_END'
HF_HOME=/data
DSDOCTOR_END
# the following steps and the proof use these variables
unset DS_SKIP_CUDA_CHECK
unset CUDA_LAUNCH_BLOCKING
unset NCCL_TIMEOUT
unset NCCL_ASYNC_ERROR_HANDLING
export TORCH_NCCL_ASYNC_ERROR_HANDLING=1
# sets them in the shell that starts the job
mkdir -p /e/opt/dsdoctor/env.d
cat > /e/opt/dsdoctor/env.d/unset-variables.sh <<'DSDOCTOR_END'
# written by `dsdoctor fix unset-variables`; `dsdoctor fix --undo` removes it
unset DS_SKIP_CUDA_CHECK
unset CUDA_LAUNCH_BLOCKING
unset NCCL_TIMEOUT
unset NCCL_ASYNC_ERROR_HANDLING
export TORCH_NCCL_ASYNC_ERROR_HANDLING='1'
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
