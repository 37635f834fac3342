# install-cuda-toolkit: use the CUDA 12.4 toolkit in `/e/opt/dsdoctor/cuda-12.4` for torch 2.5.1
# because PyPI has no nvcc for CUDA 12.4.1, but NVIDIA's archives do (its EULA applies), with checksums from `https://mirror/redistrib_12.4.1.json`
(set -e
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# `cuda_nvcc` of CUDA 12.4.1
mkdir -p /e/opt/dsdoctor/cuda-12.4
curl -fL -o "$work"/n.tar.xz https://mirror/n.tar.xz
echo abababababababababababababababababababababababababababababababab"  $work"/n.tar.xz | sha256sum -c -
tar -xf "$work"/n.tar.xz --strip-components=1 -C /e/opt/dsdoctor/cuda-12.4
# `libcurand` of CUDA 12.4.1
mkdir -p /e/opt/dsdoctor/cuda-12.4
curl -fL -o "$work"/c.tar.xz https://mirror/c.tar.xz
echo cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd"  $work"/c.tar.xz | sha256sum -c -
tar -xf "$work"/c.tar.xz --strip-components=1 -C /e/opt/dsdoctor/cuda-12.4
# DeepSpeed's builds search it
mkdir -p /e/opt/dsdoctor/cuda-12.4
ln -sfn lib /e/opt/dsdoctor/cuda-12.4/lib64
# the following steps and the proof use these variables
export CUDA_HOME=/e/opt/dsdoctor/cuda-12.4
export PATH=/e/opt/dsdoctor/cuda-12.4/bin":$PATH"
# sets them in the shell that starts the job
mkdir -p /e/opt/dsdoctor/env.d
cat > /e/opt/dsdoctor/env.d/install-cuda-toolkit.sh <<'DSDOCTOR_END'
# written by `dsdoctor fix install-cuda-toolkit`; `dsdoctor fix --undo` removes it
export CUDA_HOME='/e/opt/dsdoctor/cuda-12.4'
case ":$PATH:" in *:'/e/opt/dsdoctor/cuda-12.4/bin':*) ;; *) PATH='/e/opt/dsdoctor/cuda-12.4/bin'":$PATH" ;; esac; export PATH
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
