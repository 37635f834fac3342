# install-cuda-toolkit: CUDA 12.4 toolkit for torch 2.5.1 in `/e/opt/dsdoctor/cuda-12.4`
# because pip has no nvcc for CUDA 12.4.1; NVIDIA's archives do (its EULA applies), checksums by `https://mirror/redistrib_12.4.1.json`
# because nvcc 12.4 accepts gcc up to 13, but `c++` is gcc 15.1.0: `g++-13` is chosen
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
# where DeepSpeed's builds look
mkdir -p /e/opt/dsdoctor/cuda-12.4
ln -sfn lib /e/opt/dsdoctor/cuda-12.4/lib64
# what the steps that follow and the proof run with
export CUDA_HOME=/e/opt/dsdoctor/cuda-12.4
export PATH=/e/opt/dsdoctor/cuda-12.4/bin:"$PATH"
export CC=gcc-13
export CXX=g++-13
export NVCC_PREPEND_FLAGS='-ccbin g++-13'
# the same variables for the shell that starts the job
mkdir -p /e/opt/dsdoctor/env.d
cat > /e/opt/dsdoctor/env.d/install-cuda-toolkit.sh <<'DSDOCTOR_END'
# written by `dsdoctor fix install-cuda-toolkit`; `dsdoctor fix --undo` removes it
export CUDA_HOME='/e/opt/dsdoctor/cuda-12.4'
case ":$PATH:" in *:'/e/opt/dsdoctor/cuda-12.4/bin':*) ;; *) PATH='/e/opt/dsdoctor/cuda-12.4/bin'":$PATH" ;; esac; export PATH
export CC='gcc-13'
export CXX='g++-13'
export NVCC_PREPEND_FLAGS='-ccbin g++-13'
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
