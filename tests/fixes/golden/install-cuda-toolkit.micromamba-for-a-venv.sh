# install-cuda-toolkit: use the CUDA 12.4 toolkit in `/e/opt/dsdoctor/cuda-12.4` for torch 2.5.1
# because `/opt/micromamba/bin/micromamba` can install it into a separate prefix
(set -e
# the toolkit of torch's CUDA from conda-forge, pinned by `cuda-version=12.4`
/opt/micromamba/bin/micromamba create --yes --prefix /e/opt/dsdoctor/cuda-12.4 --override-channels --channel conda-forge --strict-channel-priority cuda-toolkit=12.4 cuda-version=12.4
# the following steps and the proof use these variables
export CUDA_HOME=/e/opt/dsdoctor/cuda-12.4
export PATH=/e/opt/dsdoctor/cuda-12.4/bin":$PATH"
export CPATH=/e/opt/dsdoctor/cuda-12.4/targets/x86_64-linux/include
# sets them in the shell that starts the job
mkdir -p /e/opt/dsdoctor/env.d
cat > /e/opt/dsdoctor/env.d/install-cuda-toolkit.sh <<'DSDOCTOR_END'
# written by `dsdoctor fix install-cuda-toolkit`; `dsdoctor fix --undo` removes it
export CUDA_HOME='/e/opt/dsdoctor/cuda-12.4'
case ":$PATH:" in *:'/e/opt/dsdoctor/cuda-12.4/bin':*) ;; *) PATH='/e/opt/dsdoctor/cuda-12.4/bin'":$PATH" ;; esac; export PATH
export CPATH='/e/opt/dsdoctor/cuda-12.4/targets/x86_64-linux/include'
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
