# install-cuda-toolkit: use the CUDA 12.4 toolkit in `/usr/local/cuda-12.4` for torch 2.5.1
# because `/usr/local/cuda-12.4` is a complete CUDA 12.4 toolkit (/usr/local) and only has to be selected
(set -e
# the following steps and the proof use these variables
export CUDA_HOME=/usr/local/cuda-12.4
export PATH=/usr/local/cuda-12.4/bin":$PATH"
# sets them in the shell that starts the job
mkdir -p /e/opt/dsdoctor/env.d
cat > /e/opt/dsdoctor/env.d/install-cuda-toolkit.sh <<'DSDOCTOR_END'
# written by `dsdoctor fix install-cuda-toolkit`; `dsdoctor fix --undo` removes it
export CUDA_HOME='/usr/local/cuda-12.4'
case ":$PATH:" in *:'/usr/local/cuda-12.4/bin':*) ;; *) PATH='/usr/local/cuda-12.4/bin'":$PATH" ;; esac; export PATH
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
