// A stand-in for libcuda.so.1: what torch, its CUDA runtime and dsdoctor call to find GPUs and to
// take memory from them.
//
// It stands for: cuInit and its errors, the driver's version, enumeration under
// CUDA_VISIBLE_DEVICES, names, UUIDs, PCI addresses and attributes, primary contexts (refused where
// the compute mode forbids them), device memory that is host memory (address space is reserved, a
// page is taken when it is touched), its limit, and the calls of expandable segments.
// It does not stand for: kernels (a launch is accepted and does nothing), modules, streams that run
// beside each other, MIG, memory that other processes hold beyond what the scenario says.
#include "errors.h"
#include "scenario.h"

#include <atomic>
#include <dlfcn.h>
#include <sys/mman.h>

#define API extern "C" __attribute__((visibility("default")))

namespace {
enum { Ok = 0, InvalidValue = 1, OutOfMemory = 2, NotInitialized = 3, NoDevice = 100, InvalidDevice = 101,
       InvalidContext = 201, NotFound = 500, Busy = 46, NotSupported = 801, SystemNotReady = 802 };
constexpr uint64_t MIB = 1 << 20;
constexpr int MAX_GPUS = 64;

std::atomic<bool> initialized{false};
std::atomic<bool> retained[MAX_GPUS];
std::atomic<uint64_t> taken[MAX_GPUS];
thread_local int current = -1;  // as this process counts

struct Block { size_t size; int device; };
std::mutex guard;
std::map<uintptr_t, Block>& blocks() { static auto* const all = new std::map<uintptr_t, Block>; return *all; }

bool known(int device) { return device >= 0 && device < (int)standin::visible().size(); }
int gpu_of(int device) { return known(device) ? standin::visible()[device] : -1; }
uint64_t of(int gpu, const char* key, uint64_t otherwise) { return standin::number(standin::look("gpus.%d.%s", gpu, key), otherwise); }

// Where a GPU is registered with an NVLink fabric and the fabric manager is not done, CUDA does not start.
bool fabric_unready() {
  for (int gpu = 0; gpu < standin::gpu_count(); gpu++) {
    const uint64_t state = of(gpu, "fabric.state", 0);
    if (state == 1 || state == 2) return true;
  }
  return false;
}

int multiprocessors(int gpu) {
  const uint64_t major = of(gpu, "cc_major", 8), minor = of(gpu, "cc_minor", 0);
  int usual = major == 7 ? (minor == 5 ? 40 : 80) : major == 8 ? (minor == 9 ? 142 : 108) : major == 9 ? 132 : 148;
  return (int)of(gpu, "multiprocessors", (uint64_t)usual);
}

uint64_t capacity(int gpu) {
  const uint64_t total = of(gpu, "memory_total", 0), away = of(gpu, "memory_reserved", 0) + of(gpu, "memory_used", 0);
  const uint64_t context = retained[gpu] ? standin::number(standin::look("cuda_context_bytes"), 512 * MIB) : 0;
  return total > away + context ? total - away - context : 0;
}

int take(int gpu, size_t size) {
  if (taken[gpu].fetch_add(size) + size <= capacity(gpu)) return Ok;
  taken[gpu] -= size;
  return OutOfMemory;
}

int enter(const char* function, int gpu) {
  if (!initialized) return NotInitialized;
  return standin::injected(function, gpu);
}
}  // namespace

#define ENTER(device)                                        \
  do {                                                       \
    if (int code_ = enter(__func__, gpu_of(device))) return code_; \
  } while (0)
#define ENTER_DEVICE(device)                                 \
  do {                                                       \
    ENTER(device);                                           \
    if (!known(device)) return InvalidDevice;                \
  } while (0)

API int cuInit(unsigned) {
  if (int code = standin::injected(__func__, -1)) return code;
  if (fabric_unready()) return SystemNotReady;
  if (standin::visible().empty()) return NoDevice;
  initialized = true;
  return Ok;
}
API int cuDriverGetVersion(int* version) {
  if (int code = standin::injected(__func__, -1)) return code;
  *version = (int)standin::number(standin::look("cuda"), 0);
  return Ok;
}

// ---- devices --------------------------------------------------------------------------------------
API int cuDeviceGetCount(int* count) { ENTER(-1); *count = (int)standin::visible().size(); return Ok; }
API int cuDeviceGet(int* device, int ordinal) { ENTER_DEVICE(ordinal); *device = ordinal; return Ok; }
API int cuDeviceGetName(char* name, int size, int device) {
  ENTER_DEVICE(device);
  const char* text = standin::look("gpus.%d.name", gpu_of(device));
  snprintf(name, (size_t)size, "%s", text ? text : "NVIDIA GPU");
  return Ok;
}
API int cuDeviceGetUuid(char* uuid, int device) { ENTER_DEVICE(device); standin::put_uuid(gpu_of(device), uuid); return Ok; }
API int cuDeviceGetUuid_v2(char* uuid, int device) { return cuDeviceGetUuid(uuid, device); }
API int cuDeviceGetPCIBusId(char* id, int size, int device) { ENTER_DEVICE(device); standin::put_bus_id(gpu_of(device), id, size); return Ok; }
API int cuDeviceTotalMem_v2(size_t* bytes, int device) {
  ENTER_DEVICE(device);
  *bytes = of(gpu_of(device), "memory_total", 0) - of(gpu_of(device), "memory_reserved", 0);
  return Ok;
}
API int cuDeviceGetAttribute(int* value, int attribute, int device) {
  ENTER_DEVICE(device);
  const int gpu = gpu_of(device);
  unsigned domain = 0, bus = 0, slot = 0;
  if (const char* text = standin::look("gpus.%d.pci_bus_id", gpu)) sscanf(text, "%x:%x:%x", &domain, &bus, &slot);
  switch (attribute) {  // CUdevice_attribute
    case 1: *value = 1024; break;                   // threads of a block
    case 8: *value = 48 << 10; break;               // shared memory of a block
    case 10: *value = 32; break;                    // warp
    case 12: *value = 65536; break;                 // registers of a block
    case 16: *value = multiprocessors(gpu); break;
    case 19: case 41: case 83: case 95: case 102: *value = 1; break;  // mapping, unified addresses, managed, cooperative, VMM
    case 20: *value = (int)of(gpu, "compute_mode", 0); break;
    case 33: *value = (int)bus; break;
    case 34: *value = (int)slot; break;
    case 38: *value = 50 << 20; break;              // L2
    case 39: *value = 2048; break;                  // threads of a multiprocessor
    case 40: *value = 3; break;                     // copy engines
    case 50: *value = (int)domain; break;
    case 75: *value = (int)of(gpu, "cc_major", 8); break;
    case 76: *value = (int)of(gpu, "cc_minor", 0); break;
    case 81: *value = 228 << 10; break;             // shared memory of a multiprocessor
    case 82: *value = 65536; break;
    case 97: *value = 227 << 10; break;             // shared memory of a block, opt-in
    default: *value = 0;
  }
  return Ok;
}
API int cuDeviceCanAccessPeer(int* can, int device, int peer) {
  ENTER_DEVICE(device);
  if (!known(peer)) return InvalidDevice;
  const char* pair = standin::look("p2p.read.%d.%d", gpu_of(device), gpu_of(peer));
  *can = device != peer && standin::number(pair ? pair : standin::look("p2p.read"), 5) == 0;
  return Ok;
}

// ---- contexts: a context is its device's number plus one ------------------------------------------
API int cuDevicePrimaryCtxRetain(void** context, int device) {
  ENTER_DEVICE(device);
  const int gpu = gpu_of(device);
  const uint64_t mode = of(gpu, "compute_mode", 0);  // 2 prohibited, 3 one process
  if (mode == 2 || (mode == 3 && of(gpu, "compute_processes.#", 0))) return Busy;
  retained[gpu] = true;
  *context = (void*)(intptr_t)(device + 1);
  return Ok;
}
API int cuDevicePrimaryCtxRelease_v2(int) { return Ok; }
API int cuDevicePrimaryCtxGetState(int device, unsigned* flags, int* active) {
  ENTER_DEVICE(device);
  if (flags) *flags = 0;
  if (active) *active = retained[gpu_of(device)];
  return Ok;
}
API int cuCtxSetCurrent(void* context) { ENTER(-1); current = (int)(intptr_t)context - 1; return Ok; }
API int cuCtxGetCurrent(void** context) { ENTER(-1); *context = (void*)(intptr_t)(current + 1); return Ok; }
API int cuCtxGetDevice(int* device) { ENTER(-1); *device = current; return current < 0 ? (int)InvalidContext : (int)Ok; }
API int cuCtxSynchronize() { ENTER(current); return Ok; }

// ---- memory ---------------------------------------------------------------------------------------
API int cuMemGetInfo_v2(size_t* free, size_t* total) {
  ENTER(current);
  if (current < 0) return InvalidContext;
  const int gpu = gpu_of(current);
  const uint64_t have = capacity(gpu), used = taken[gpu];
  *total = of(gpu, "memory_total", 0) - of(gpu, "memory_reserved", 0);
  *free = have > used ? have - used : 0;
  return Ok;
}
API int cuMemAlloc_v2(void** out, size_t size) {
  ENTER(current);
  if (current < 0) return InvalidContext;
  if (!size) return InvalidValue;
  if (int code = take(gpu_of(current), size)) return code;
  void* place = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (place == MAP_FAILED) {
    taken[gpu_of(current)] -= size;
    return OutOfMemory;
  }
  const std::lock_guard<std::mutex> held(guard);
  blocks()[(uintptr_t)place] = {size, current};
  *out = place;
  return Ok;
}
API int cuMemFree_v2(void* place) {
  ENTER(current);
  const std::lock_guard<std::mutex> held(guard);
  const auto found = blocks().find((uintptr_t)place);
  if (found == blocks().end()) return InvalidValue;
  munmap(place, found->second.size);
  taken[gpu_of(found->second.device)] -= found->second.size;
  blocks().erase(found);
  return Ok;
}
// The block that holds an address, for cudaPointerGetAttributes; -1 where it is none of ours.
API int standin_block_of(const void* place, void** base, size_t* size) {
  const std::lock_guard<std::mutex> held(guard);
  auto found = blocks().upper_bound((uintptr_t)place);
  if (found == blocks().begin()) return -1;
  --found;
  if ((uintptr_t)place >= found->first + found->second.size) return -1;
  if (base) *base = (void*)found->first;
  if (size) *size = found->second.size;
  return found->second.device;
}
API int cuMemGetAddressRange_v2(void** base, size_t* size, void* place) {
  return standin_block_of(place, base, size) < 0 ? (int)NotFound : (int)Ok;
}

// Expandable segments: address space is reserved, then handles of memory are mapped into it.
namespace {
struct Handle { size_t size; int device; };
}
API int cuMemAddressReserve(void** out, size_t size, size_t, void*, unsigned long long) {
  ENTER(current);
  void* place = mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (place == MAP_FAILED) return OutOfMemory;
  const std::lock_guard<std::mutex> held(guard);
  blocks()[(uintptr_t)place] = {size, current < 0 ? 0 : current};
  *out = place;
  return Ok;
}
API int cuMemAddressFree(void* place, size_t size) {
  const std::lock_guard<std::mutex> held(guard);
  blocks().erase((uintptr_t)place);
  munmap(place, size);
  return Ok;
}
API int cuMemGetAllocationGranularity(size_t* size, const void*, int) { *size = 2 * MIB; return Ok; }
API int cuMemCreate(Handle** out, size_t size, const int* properties, unsigned long long) {
  const int device = properties[3];  // CUmemAllocationProp: type, handle types, location type, location id
  ENTER_DEVICE(device);
  if (int code = take(gpu_of(device), size)) return code;
  *out = new Handle{size, device};
  return Ok;
}
API int cuMemRelease(Handle* handle) { taken[gpu_of(handle->device)] -= handle->size; delete handle; return Ok; }
API int cuMemMap(void*, size_t, size_t, Handle*, unsigned long long) { return Ok; }
API int cuMemSetAccess(void* place, size_t size, const void*, size_t) { return mprotect(place, size, PROT_READ | PROT_WRITE) ? (int)InvalidValue : (int)Ok; }
API int cuMemUnmap(void* place, size_t size) {
  madvise(place, size, MADV_DONTNEED);
  return mprotect(place, size, PROT_NONE) ? (int)InvalidValue : (int)Ok;
}

// ---- what is asked for and not there ----------------------------------------------------------------
// torch looks all of these up at once and stops where one is missing.
#define REFUSED(function) API int function() { return NotSupported; }
REFUSED(cuMemExportToShareableHandle) REFUSED(cuMemImportFromShareableHandle) REFUSED(cuMemsetD32Async)
REFUSED(cuStreamWriteValue32) REFUSED(cuMulticastAddDevice) REFUSED(cuMulticastBindMem) REFUSED(cuMulticastCreate)
REFUSED(cuMulticastUnbind) REFUSED(cuMulticastGetGranularity) REFUSED(cuPointerGetAttribute) REFUSED(cuPointerGetAttributes)
REFUSED(cuLaunchKernel) REFUSED(cuLaunchCooperativeKernel) REFUSED(cuModuleLoadData) REFUSED(cuModuleLoadDataEx)
REFUSED(cuModuleLoad) REFUSED(cuModuleUnload) REFUSED(cuModuleGetFunction) REFUSED(cuFuncSetAttribute)
REFUSED(cuFuncGetAttribute) REFUSED(cuFuncSetCacheConfig) REFUSED(cuLinkCreate_v2) REFUSED(cuLinkAddData_v2)
REFUSED(cuLinkComplete) REFUSED(cuOccupancyMaxActiveBlocksPerMultiprocessor) REFUSED(cuTensorMapEncodeTiled)
REFUSED(cuGreenCtxCreate) REFUSED(cuCtxFromGreenCtx) REFUSED(cuGreenCtxStreamCreate) REFUSED(cuDevResourceGenerateDesc)
REFUSED(cuDeviceGetDevResource) REFUSED(cuDevSmResourceSplitByCount) REFUSED(cuMemRetainAllocationHandle)
REFUSED(cuGreenCtxDestroy) REFUSED(cuCtxPushCurrent_v2) REFUSED(cuCtxPopCurrent_v2) REFUSED(cuStreamWaitValue32_v2)
REFUSED(cuStreamWriteValue32_v2) REFUSED(cuStreamBatchMemOp_v2) REFUSED(cuMemcpyBatchAsync)
REFUSED(cuMemGetAllocationPropertiesFromHandle)

API int cuGetErrorString(int code, const char** text) { const auto* error = cuda_error(code); *text = error ? error->text : nullptr; return error ? (int)Ok : (int)InvalidValue; }
API int cuGetErrorName(int code, const char** text) { const auto* error = cuda_error(code); *text = error ? error->name : nullptr; return error ? (int)Ok : (int)InvalidValue; }
API int cuGetProcAddress_v2(const char* symbol, void** function, int, unsigned long long, int* status) {
  static void* const self = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  *function = dlsym(self, (std::string(symbol) + "_v2").c_str());
  if (!*function) *function = dlsym(self, symbol);
  if (status) *status = *function ? 0 : 1;
  return *function ? (int)Ok : (int)NotFound;
}
API int cuGetProcAddress(const char* symbol, void** function, int version, unsigned long long flags) {
  return cuGetProcAddress_v2(symbol, function, version, flags, nullptr);
}
