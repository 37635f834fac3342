# install-cuda-toolkit: use the CUDA 12.4 toolkit in `/c/envs/t/opt/dsdoctor/cuda-12.4` for torch 2.5.1
# because `/opt/mamba/bin/mamba` can install it into a separate prefix
(set -e
# the toolkit of torch's CUDA from conda-forge, pinned by `cuda-version=12.4`
/opt/mamba/bin/mamba create --yes --prefix /c/envs/t/opt/dsdoctor/cuda-12.4 --override-channels --channel conda-forge --strict-channel-priority cuda-toolkit=12.4 cuda-version=12.4
# the following steps and the proof use these variables
export CUDA_HOME=/c/envs/t/opt/dsdoctor/cuda-12.4
export PATH=/c/envs/t/opt/dsdoctor/cuda-12.4/bin":$PATH"
export CPATH=/c/envs/t/opt/dsdoctor/cuda-12.4/targets/x86_64-linux/include
# sets them in the shell that starts the job
mkdir -p /c/envs/t/opt/dsdoctor/env.d
cat > /c/envs/t/opt/dsdoctor/env.d/install-cuda-toolkit.sh <<'DSDOCTOR_END'
# written by `dsdoctor fix install-cuda-toolkit`; `dsdoctor fix --undo` removes it
export CUDA_HOME='/c/envs/t/opt/dsdoctor/cuda-12.4'
case ":$PATH:" in *:'/c/envs/t/opt/dsdoctor/cuda-12.4/bin':*) ;; *) PATH='/c/envs/t/opt/dsdoctor/cuda-12.4/bin'":$PATH" ;; esac; export PATH
export CPATH='/c/envs/t/opt/dsdoctor/cuda-12.4/targets/x86_64-linux/include'
DSDOCTOR_END
# loads all such files
mkdir -p /c/envs/t/opt/dsdoctor
cat > /c/envs/t/opt/dsdoctor/activate.sh <<'DSDOCTOR_END'
# sourced by the shell that starts a job; sets the variables of `dsdoctor fix`
for _dsdoctor_file in '/c/envs/t/opt/dsdoctor'/env.d/*.sh; do
  if [ -r "$_dsdoctor_file" ]; then . "$_dsdoctor_file"; fi
done
unset _dsdoctor_file
DSDOCTOR_END
# `conda activate` runs it
mkdir -p /c/envs/t/etc/conda/activate.d
cat > /c/envs/t/etc/conda/activate.d/dsdoctor-install-cuda-toolkit.sh <<'DSDOCTOR_END'
export _DSDOCTOR_INSTALL_CUDA_TOOLKIT_CUDA_HOME="${CUDA_HOME-_unset_}"
export _DSDOCTOR_INSTALL_CUDA_TOOLKIT_PATH="${PATH-_unset_}"
export _DSDOCTOR_INSTALL_CUDA_TOOLKIT_CPATH="${CPATH-_unset_}"
. '/c/envs/t/opt/dsdoctor/activate.sh'
DSDOCTOR_END
# `conda deactivate` restores the variables
mkdir -p /c/envs/t/etc/conda/deactivate.d
cat > /c/envs/t/etc/conda/deactivate.d/dsdoctor-install-cuda-toolkit.sh <<'DSDOCTOR_END'
if [ "${_DSDOCTOR_INSTALL_CUDA_TOOLKIT_CUDA_HOME-}" = _unset_ ]; then unset CUDA_HOME; else export CUDA_HOME="${_DSDOCTOR_INSTALL_CUDA_TOOLKIT_CUDA_HOME-}"; fi; unset _DSDOCTOR_INSTALL_CUDA_TOOLKIT_CUDA_HOME
if [ "${_DSDOCTOR_INSTALL_CUDA_TOOLKIT_PATH-}" = _unset_ ]; then unset PATH; else export PATH="${_DSDOCTOR_INSTALL_CUDA_TOOLKIT_PATH-}"; fi; unset _DSDOCTOR_INSTALL_CUDA_TOOLKIT_PATH
if [ "${_DSDOCTOR_INSTALL_CUDA_TOOLKIT_CPATH-}" = _unset_ ]; then unset CPATH; else export CPATH="${_DSDOCTOR_INSTALL_CUDA_TOOLKIT_CPATH-}"; fi; unset _DSDOCTOR_INSTALL_CUDA_TOOLKIT_CPATH
DSDOCTOR_END
)
[ $? -eq 0 ] && . '/c/envs/t/opt/dsdoctor/activate.sh'
