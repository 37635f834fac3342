# repair-env-file: remove the lines of `/home/u/.deepspeed_env` that crash the launcher
(set -e
# lines 2, 3, 4 are not `NAME=value`
mkdir -p /home/u
cat > /home/u/.deepspeed_env <<'DSDOCTOR_END'
NCCL_DEBUG=INFO
HF_HOME=/data
DSDOCTOR_END
)
