# unset-variables: take away or correct `DS_SKIP_CUDA_CHECK`, `CUDA_LAUNCH_BLOCKING`, `NCCL_TIMEOUT`, `NCCL_ASYNC_ERROR_HANDLING` and `TORCH_NCCL_ASYNC_ERROR_HANDLING`
# because no start-up file of a shell is edited: if one sets these, delete that line
(set -e
# the deepspeed launcher exports these variables to every node
mkdir -p /home/u
cat > /home/u/.deepspeed_env <<'DSDOCTOR_END'
HF_HOME=/data
DSDOCTOR_END
# what the steps that follow and the proof run with
unset DS_SKIP_CUDA_CHECK
unset CUDA_LAUNCH_BLOCKING
unset NCCL_TIMEOUT
unset NCCL_ASYNC_ERROR_HANDLING
export TORCH_NCCL_ASYNC_ERROR_HANDLING=1
# the same variables for the shell that starts the job
mkdir -p /e/opt/dsdoctor/env.d
cat > /e/opt/dsdoctor/env.d/unset-variables.sh <<'DSDOCTOR_END'
# written by `dsdoctor fix unset-variables`; `dsdoctor fix --undo` removes it
unset DS_SKIP_CUDA_CHECK
unset CUDA_LAUNCH_BLOCKING
unset NCCL_TIMEOUT
unset NCCL_ASYNC_ERROR_HANDLING
export TORCH_NCCL_ASYNC_ERROR_HANDLING='1'
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
