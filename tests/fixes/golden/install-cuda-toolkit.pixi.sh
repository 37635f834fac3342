# install-cuda-toolkit: use the CUDA 12.4 toolkit in `/e/opt/dsdoctor/cuda-12.4/.pixi/envs/default` for torch 2.5.1
# because `/opt/pixi/bin/pixi` can install it into a separate prefix
(set -e
# a project that contains only the toolkit
/opt/pixi/bin/pixi init /e/opt/dsdoctor/cuda-12.4 --channel conda-forge
# the toolkit of torch's CUDA from conda-forge, pinned by `cuda-version=12.4`
/opt/pixi/bin/pixi add --manifest-path /e/opt/dsdoctor/cuda-12.4/pixi.toml cuda-toolkit=12.4 cuda-version=12.4
# the following steps and the proof use these variables
export CUDA_HOME=/e/opt/dsdoctor/cuda-12.4/.pixi/envs/default
export PATH=/e/opt/dsdoctor/cuda-12.4/.pixi/envs/default/bin":$PATH"
export CPATH=/e/opt/dsdoctor/cuda-12.4/.pixi/envs/default/targets/x86_64-linux/include
# sets them in the shell that starts the job
mkdir -p /e/opt/dsdoctor/env.d
cat > /e/opt/dsdoctor/env.d/install-cuda-toolkit.sh <<'DSDOCTOR_END'
# written by `dsdoctor fix install-cuda-toolkit`; `dsdoctor fix --undo` removes it
export CUDA_HOME='/e/opt/dsdoctor/cuda-12.4/.pixi/envs/default'
case ":$PATH:" in *:'/e/opt/dsdoctor/cuda-12.4/.pixi/envs/default/bin':*) ;; *) PATH='/e/opt/dsdoctor/cuda-12.4/.pixi/envs/default/bin'":$PATH" ;; esac; export PATH
export CPATH='/e/opt/dsdoctor/cuda-12.4/.pixi/envs/default/targets/x86_64-linux/include'
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
