# install-cuda-toolkit: CUDA 12.4 toolkit for torch 2.5.1 in `/usr/local/cuda-12.4`
# because apt has `cuda-toolkit-12-4`
(set -e
# the toolkit alone, without a driver
DEBIAN_FRONTEND=noninteractive sudo -n apt-get install --yes --no-install-recommends cuda-toolkit-12-4
# what the steps that follow and the proof run with
export CUDA_HOME=/usr/local/cuda-12.4
export PATH=/usr/local/cuda-12.4/bin:"$PATH"
# the same variables for the shell that starts the job
mkdir -p /e/opt/dsdoctor/env.d
cat > /e/opt/dsdoctor/env.d/install-cuda-toolkit.sh <<'DSDOCTOR_END'
# written by `dsdoctor fix install-cuda-toolkit`; `dsdoctor fix --undo` removes it
export CUDA_HOME='/usr/local/cuda-12.4'
case ":$PATH:" in *:'/usr/local/cuda-12.4/bin':*) ;; *) PATH='/usr/local/cuda-12.4/bin'":$PATH" ;; esac; export PATH
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
