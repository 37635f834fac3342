"""Exceptions and words of the machine, the network, a GPU or a service: never the script's."""

from __future__ import annotations

from dsdoctor.lazy_regex import lazy
from dsdoctor.logs.plain_errors import NATIVE_ASSERT

#: Exceptions that are never the script's fault: of the machine, network, disk or accelerator.
OUTSIDE = frozenset(
    {
        "AcceleratorError", "BlockingIOError", "BrokenPipeError", "ChildFailedError",
        "ConnectionError", "ConnectionRefusedError", "ConnectionResetError", "DistBackendError",
        "DistError", "DistNetworkError", "DistStoreError", "GatedRepoError", "HTTPError",
        "HfHubHTTPError", "MemoryError", "NotADirectoryError", "OSError", "PermissionError",
        "ProcessExitedException", "RendezvousConnectionError", "RendezvousError",
        "RendezvousTimeoutError", "RepositoryNotFoundError", "SubprocessError", "TimeoutError",
        "TimeoutExpired", "CalledProcessError", "KeyboardInterrupt", "OutOfMemoryError",
        "SIGSEGV", "SIGABRT", "SIGBUS", "SIGILL", "SIGFPE", "LocalEntryNotFoundError",
        "IOError", "SSLError", "InternalTorchDynamoError", "BackendCompilerFailed", NATIVE_ASSERT,
        "ArrowMemoryError", "TerminatedWorkerError", "BrokenProcessPool",
        "CellTimeoutError", "DeadKernelError",  # nbclient 0.2-0.10, of a notebook's kernel
        "SSLCertVerificationError", "gaierror", "URLError", "ReadTimeout", "ConnectTimeout",
        "ReadTimeoutError", "ConnectTimeoutError", "NewConnectionError", "MaxRetryError",
        "ProxyError", "RemoteDisconnected", "XlaRuntimeError", "JaxRuntimeError",
        "IncompleteRead", "ChunkedEncodingError", "Py4JJavaError",
        # what conda (4.3-25 exceptions.py) and gsutil report of their own work
        "AccessDeniedException", "CommandException",
        "CondaEnvException", "CondaError", "CondaHTTPError", "CondaSSLError",
        "CondaValueError", "CondaVerificationError", "DirectoryNotACondaEnvironmentError",
        "EnvironmentLocationNotFound", "EnvironmentNotWritableError", "InvalidArchiveError",
        "LibMambaUnsatisfiableError", "NoWritableEnvsDirError", "PackagesNotFoundError",
        "ResolvePackageNotFound", "SpecsConfigurationConflictError", "UnavailableInvalidChannel",
        "UnsatisfiableError",
    },
)  # fmt: skip
#: What such exceptions say, whatever their class.
OUTSIDE_TEXT = lazy(
    r"CUDA(?:[ _]driver)? error|cuda runtime error|NCCL|nccl|cuDNN|CUDNN|CUBLAS|CUSOLVER|HIP error"
    r"|can't start new thread|Resource temporarily unavailable|driver|gloo/transport|HCCL|MPS "
    r"|NPU (?:function )?error\b|\b40[134] (?:Client Error|Unauthorized|Forbidden)"
    # openai 1.0-2.41 _base_client.py, from a server that the script uses; 400, 422: a bad request
    r"|^\S{0,80}: Error code: (?:40[1-9]|429|5\d\d) - "
    # names of status codes: NVIDIA's, AMD's, Cambricon's and Intel's libraries, MPI
    r"|\b(?:CU[A-Z]{2,8}|CNNL|HIP[A-Z]{0,8}|MIOPEN|ROC[A-Z]{2,8}|UR|PI|ZE|MPI)_(?:STATUS|ERR|ERROR"
    r"|RESULT)_|\b(?:miopen|rocblas|hipblas|hipfft|rocfft)_?[Ss]tatus"
    r"|\b(?:MUSA|CNRT|CNNL|cuFFT|cu[Ss][Pp][Aa][Rr][Ss][Ee]|Triton|UR|XPU|SYCL|NRT|oneDNN)"
    r" [Ee]rror\b"
    # oneCCL 2021-2022, Habana's SynapseAI, DPC++, XLA, oneDNN 2-3
    r"|\boneCCL: |\bsynStatus\b|Native API (?:failed|returns)|Bad StatusOr access: "
    r"|could not (?:create|execute|construct) an? (?:engine|primitive|memory)"
    # what Rust's standard library calls an error of the system, except a missing file; ONNX Runtime
    # 1.0-1.23 (core/common/status.h) FAIL, RUNTIME_EXCEPTION and EP_FAIL
    r"|\(os error (?!2\))\d{1,3}\)|\[ONNXRuntimeError\] : (?:1|6|11) :"
    # checks of C++ code that name the status of the CUDA runtime
    r"|\bcuda(?:Success|Error[A-Z]\w{1,60})\b"
    # checks of C++ code with their place: ONNX 1.2-1.20, dmlc 0.3-0.5 (of DGL, XGBoost and TVM)
    r"|^\w{1,60}: (?:\[\d\d:\d\d:\d\d\] )?\S{1,200}\.(?:h|hpp|cc|cpp|cxx):\d{1,5}: "
    r"|expandable_segments: "  # torch 2.14.1 libc10_cuda.so, of its allocator
    # NVRTC 8-13, of a program without a name: those that TorchScript's fusers write (torch 1.0-2.15
    # torch/csrc/jit/tensorexpr/cuda_codegen.cpp, codegen/fuser/cuda/fused_kernel.cpp)
    r"|\bdefault_program\(\d{1,6}\): (?:catastrophic )?error: "
    r"|Input/output error|INTERNAL ASSERT|(?i:\bout of memory\b)|unhandled (?:system|cuda) error",
)
#: Clients that report what a service or another process did: a worker, a job, an instance.
SERVICE = lazy(
    r"(?:ray|sagemaker|botocore|sky|submitit|azure(?:ml)?|google\.(?:api_core|auth)|filelock|comet_ml"
    r"|clearml|neptune)\.\S{0,80}: "
    # openai 1.0-2.41 _exceptions.py, of the server that the script asks
    r"|openai\.(?:API(?:Connection|Timeout)|InternalServer|RateLimit|Authentication)\w{0,10}: "
    # what clients of databases raise of the server and the way to it
    r"|(?:psycopg2?|pymysql|MySQLdb|sqlalchemy|redis|pymongo)\.(?:\w{1,40}\.){0,3}(?:Operational"
    r"|Connection|Timeout|Authentication|ServerSelectionTimeout|BusyLoading)\w{0,20}: "
    r"|torch_npu\."
)
