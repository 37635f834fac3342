// A stand-in for libcudart.so.12 and .13 (CUDART_VERSION says which): the CUDA runtime as far as
// torch calls it, over the driver that the loader finds (cuda.cpp).
//
// It stands for: the order in which the real one starts (no driver, a driver that is too old,
// cuInit's error), devices and their properties, the current device of a thread, contexts made on
// first use, memory, pinned host memory, streams and events that are always done, the last error,
// and errors that stay once they have come (a GPU that is lost).
// It does not stand for: kernels (launches and fat binaries are accepted and ignored), graphs,
// memory pools, IPC. What is missing here is refused with error 801 by generated stubs.
#include "errors.h"
#include "scenario.h"

#include <atomic>
#include <chrono>
#include <dlfcn.h>
#include <sys/mman.h>

#define API extern "C" __attribute__((visibility("default")))

#ifndef CUDART_VERSION
#define CUDART_VERSION 12080
#endif

namespace {
enum { Success = 0, InvalidValue = 1, InsufficientDriver = 35, InvalidDevice = 101, SharedObjectSymbolNotFound = 302,
       NotReady = 600, PeerAlreadyEnabled = 704, NotSupported = 801 };
using Clock = std::chrono::steady_clock;

struct Stream { int device = 0; int priority = 0; };
struct Event { Clock::time_point recorded{}; };

thread_local int current = 0;
thread_local int last = Success;
std::atomic<int> stuck{Success};  // of errors that end a context

void* driver() {
  static void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  return library;
}
// A function of the driver, by the type that the call needs.
template <class... Arguments> int drive(const char* name, Arguments... arguments) {
  using Function = int (*)(Arguments...);
  const auto function = driver() ? (Function)dlsym(driver(), name) : nullptr;
  return function ? function(arguments...) : (int)InsufficientDriver;
}

bool ends_context(int code) {
  return code == 214 || code == 220 || code == 226 || code == 700 || code == 702 || code == 709 || code == 710 ||
         (code >= 714 && code <= 719) || code == 999;
}
int finish(int code) {
  if (code != Success && code != NotReady) last = code;
  if (ends_context(code)) stuck = code;
  return code;
}

int start() {
  static const int code = [] {
    int version = 0;
    if (!driver()) return (int)InsufficientDriver;
    if (int failed = drive("cuDriverGetVersion", &version)) return failed;
    // minor versions are compatible, major ones are not
    if (version / 1000 < CUDART_VERSION / 1000) return (int)InsufficientDriver;
    return drive("cuInit", 0U);
  }();
  return code;
}
int count() {
  int devices = 0;
  drive("cuDeviceGetCount", &devices);
  return devices;
}
int gpu() { return current >= 0 && current < (int)standin::visible().size() ? standin::visible()[current] : -1; }

// What every call does first; the code that it ends with, or 0.
int enter(const char* function) {
  if (int code = start()) return code;
  if (stuck) return stuck;
  return standin::injected(function, gpu());
}
// …and what a call does that works on a GPU: its context is made.
int enter_context(const char* function) {
  if (int code = enter(function)) return code;
  static std::atomic<bool> made[64];
  if (current >= count()) return InvalidDevice;
  if (!made[current]) {
    void* context = nullptr;
    if (int code = drive("cuDevicePrimaryCtxRetain", &context, current)) return code;
    made[current] = true;
  }
  return drive("cuCtxSetCurrent", (void*)(intptr_t)(current + 1));
}
}  // namespace

#define ENTER()                                                    \
  do {                                                             \
    if (int code_ = enter(__func__)) return finish(code_);         \
  } while (0)
#define ENTER_CONTEXT()                                            \
  do {                                                             \
    if (int code_ = enter_context(__func__)) return finish(code_); \
  } while (0)
#define ACCEPTED(function, ...) API int function(__VA_ARGS__) { ENTER_CONTEXT(); return Success; }

// ---- versions and errors ----------------------------------------------------------------------------
API int cudaRuntimeGetVersion(int* version) { *version = CUDART_VERSION; return Success; }
API int cudaDriverGetVersion(int* version) {
  *version = 0;
  return driver() ? finish(drive("cuDriverGetVersion", version)) : (int)Success;
}
API const char* cudaGetErrorName(int code) { const auto* error = cuda_error(code); return error ? error->name : "unrecognized error code"; }
API const char* cudaGetErrorString(int code) { const auto* error = cuda_error(code); return error ? error->text : "unrecognized error code"; }
API int cudaPeekAtLastError() { return stuck ? stuck.load() : last; }
API int cudaGetLastError() {
  const int code = cudaPeekAtLastError();
  last = Success;
  return code;
}

// ---- devices ----------------------------------------------------------------------------------------
API int cudaGetDeviceCount(int* devices) {
  *devices = 0;
  ENTER();
  *devices = count();
  return Success;
}
API int cudaGetDevice(int* device) { *device = current; return finish(start()); }  // a thread's own, whatever failed
API int cudaSetDevice(int device) {
  if (int code = start()) return finish(code);
  if (device < 0 || device >= count()) return finish(InvalidDevice);
  if (device == current && stuck) return Success;
  current = device;
  ENTER_CONTEXT();
  return Success;
}
API int cudaDeviceGetAttribute(int* value, int attribute, int device) { ENTER(); return finish(drive("cuDeviceGetAttribute", value, attribute, device)); }
API int cudaDeviceGetPCIBusId(char* id, int size, int device) { ENTER(); return finish(drive("cuDeviceGetPCIBusId", id, size, device)); }
API int cudaDeviceCanAccessPeer(int* can, int device, int peer) { ENTER(); return finish(drive("cuDeviceCanAccessPeer", can, device, peer)); }
API int cudaDeviceEnablePeerAccess(int peer, unsigned) {
  ENTER_CONTEXT();
  static std::atomic<bool> enabled[64][64];
  if (peer < 0 || peer >= count()) return finish(InvalidDevice);
  return enabled[current][peer].exchange(true) ? finish(PeerAlreadyEnabled) : (int)Success;
}
API int cudaDeviceGetStreamPriorityRange(int* least, int* greatest) { ENTER(); *least = 0; *greatest = -5; return Success; }
ACCEPTED(cudaDeviceSynchronize)
ACCEPTED(cudaProfilerStart)
ACCEPTED(cudaProfilerStop)

// Where the fields that torch reads lie in cudaDeviceProp; CUDA 13 took some of the others out.
namespace {
#if CUDART_VERSION < 13000
enum { Size = 1032, Name = 0, Uuid = 256, Memory = 288, SharedPerBlock = 296, Registers = 304, Warp = 308, Threads = 320, Major = 360,
       Minor = 364, Multiprocessors = 388, PciBus = 584, PciDevice = 588, PciDomain = 592, CopyEngines = 600, Unified = 604, L2 = 616,
       ThreadsPerMultiprocessor = 624, SharedPerMultiprocessor = 640, RegistersPerMultiprocessor = 648, SharedOptin = 696 };
#define PROPERTIES cudaGetDeviceProperties_v2
#else
enum { Size = 1008, Name = 0, Uuid = 256, Memory = 288, SharedPerBlock = 296, Registers = 304, Warp = 308, Threads = 320, Major = 360,
       Minor = 364, Multiprocessors = 384, PciBus = 568, PciDevice = 572, PciDomain = 576, CopyEngines = 584, Unified = 588, L2 = 596,
       ThreadsPerMultiprocessor = 604, SharedPerMultiprocessor = 624, RegistersPerMultiprocessor = 632, SharedOptin = 672 };
#define PROPERTIES cudaGetDeviceProperties
#endif
}  // namespace
API int PROPERTIES(char* out, int device) {
  ENTER();
  memset(out, 0, Size);
  if (int code = drive("cuDeviceGetName", out + Name, 256, device)) return finish(code);
  drive("cuDeviceGetUuid_v2", out + Uuid, device);
  drive("cuDeviceTotalMem_v2", (size_t*)(out + Memory), device);
  const int fields[][2] = {{Registers, 12}, {Warp, 10}, {Threads, 1}, {Major, 75}, {Minor, 76}, {Multiprocessors, 16}, {PciBus, 33},
      {PciDevice, 34}, {PciDomain, 50}, {CopyEngines, 40}, {Unified, 41}, {L2, 38}, {ThreadsPerMultiprocessor, 39}, {RegistersPerMultiprocessor, 82}};
  const int wide[][2] = {{SharedPerBlock, 8}, {SharedPerMultiprocessor, 81}, {SharedOptin, 97}};
  for (const auto& field : fields) drive("cuDeviceGetAttribute", (int*)(out + field[0]), field[1], device);
  for (const auto& field : wide) {
    int value = 0;
    drive("cuDeviceGetAttribute", &value, field[1], device);
    *(size_t*)(out + field[0]) = (size_t)value;
  }
  return Success;
}
API int cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned version, unsigned long long flags, int* found) {
  ENTER();
  drive("cuGetProcAddress_v2", symbol, function, (int)version, flags, found);
  return Success;
}
API int cudaGetDriverEntryPoint(const char* symbol, void** function, unsigned long long flags, int* found) {
  return cudaGetDriverEntryPointByVersion(symbol, function, CUDART_VERSION, flags, found);
}

// ---- memory -----------------------------------------------------------------------------------------
namespace {
std::mutex guard;
std::map<uintptr_t, size_t>& pinned() { static auto* const all = new std::map<uintptr_t, size_t>; return *all; }
bool is_pinned(const void* place) {
  const std::lock_guard<std::mutex> held(guard);
  auto found = pinned().upper_bound((uintptr_t)place);
  return found != pinned().begin() && (uintptr_t)place < (--found)->first + found->second;
}
// In meta mode nothing lies in big blocks (operators.cpp), so none is moved.
bool empty_block(size_t size) {
  static const bool meta = [] { const char* mode = getenv("STANDIN_MODE"); return mode && !strcmp(mode, "meta"); }();
  return meta && size >= (2U << 20);
}
int move(void* to, const void* from, size_t size) {
  if (!empty_block(size)) memmove(to, from, size);
  return Success;
}
int fill(void* to, int value, size_t size) {
  if (!empty_block(size)) memset(to, value, size);
  return Success;
}
}  // namespace
API int cudaMalloc(void** out, size_t size) { ENTER_CONTEXT(); *out = nullptr; return size ? finish(drive("cuMemAlloc_v2", out, size)) : (int)Success; }
API int cudaFree(void* place) { ENTER_CONTEXT(); return place ? finish(drive("cuMemFree_v2", place)) : (int)Success; }
API int cudaMemGetInfo(size_t* free, size_t* total) { ENTER_CONTEXT(); return finish(drive("cuMemGetInfo_v2", free, total)); }
API int cudaHostAlloc(void** out, size_t size, unsigned) {
  ENTER_CONTEXT();
  void* place = size ? mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) : nullptr;
  if (place == MAP_FAILED) return finish(2);
  const std::lock_guard<std::mutex> held(guard);
  if (size) pinned()[(uintptr_t)place] = size;
  *out = place;
  return Success;
}
API int cudaFreeHost(void* place) {
  const std::lock_guard<std::mutex> held(guard);
  const auto found = pinned().find((uintptr_t)place);
  if (found == pinned().end()) return place ? finish(InvalidValue) : (int)Success;
  munmap(place, found->second);
  pinned().erase(found);
  return Success;
}
API int cudaHostRegister(void* place, size_t size, unsigned) {
  ENTER_CONTEXT();
  const std::lock_guard<std::mutex> held(guard);
  pinned()[(uintptr_t)place] = size;
  return Success;
}
API int cudaHostUnregister(void* place) {
  const std::lock_guard<std::mutex> held(guard);
  pinned().erase((uintptr_t)place);
  return Success;
}
namespace {
struct PointerAttributes { int type; int device; const void* on_device; const void* on_host; };  // 0 unknown, 1 host, 2 device
}
API int cudaPointerGetAttributes(PointerAttributes* out, const void* place) {
  ENTER();
  const int device = drive("standin_block_of", place, (void**)nullptr, (size_t*)nullptr);
  if (device >= 0) *out = {2, device, place, nullptr};
  else if (is_pinned(place)) *out = {1, current, place, place};
  else *out = {0, -1, nullptr, place};
  return Success;
}
API int cudaMemcpy(void* to, const void* from, size_t size, int) { ENTER_CONTEXT(); return move(to, from, size); }
API int cudaMemcpyAsync(void* to, const void* from, size_t size, int, Stream*) { ENTER_CONTEXT(); return move(to, from, size); }
API int cudaMemcpyPeerAsync(void* to, int, const void* from, int, size_t size, Stream*) { ENTER_CONTEXT(); return move(to, from, size); }
API int cudaMemcpy2DAsync(char* to, size_t to_pitch, const char* from, size_t from_pitch, size_t width, size_t height, int, Stream*) {
  ENTER_CONTEXT();
  for (size_t row = 0; row < height; row++) move(to + row * to_pitch, from + row * from_pitch, width);
  return Success;
}
API int cudaMemset(void* to, int value, size_t size) { ENTER_CONTEXT(); return fill(to, value, size); }
API int cudaMemsetAsync(void* to, int value, size_t size, Stream*) { ENTER_CONTEXT(); return fill(to, value, size); }

// ---- streams and events: what is queued has been done -------------------------------------------------
API int cudaStreamCreateWithPriority(Stream** stream, unsigned, int priority) { ENTER_CONTEXT(); *stream = new Stream{current, priority}; return Success; }
API int cudaStreamCreate(Stream** stream) { return cudaStreamCreateWithPriority(stream, 0, 0); }
API int cudaStreamCreateWithFlags(Stream** stream, unsigned flags) { return cudaStreamCreateWithPriority(stream, flags, 0); }
API int cudaStreamDestroy(Stream* stream) { delete stream; return Success; }
API int cudaStreamGetPriority(Stream* stream, int* priority) { *priority = stream ? stream->priority : 0; return Success; }
ACCEPTED(cudaStreamQuery, Stream*)
ACCEPTED(cudaStreamSynchronize, Stream*)
ACCEPTED(cudaStreamWaitEvent, Stream*, Event*, unsigned)
API int cudaStreamIsCapturing(Stream*, int* status) { *status = 0; return Success; }
API int cudaStreamGetCaptureInfo_v2(Stream*, int* status, unsigned long long* id, void**, const void***, size_t*) {
  *status = 0;
  if (id) *id = 0;
  return Success;
}
API int cudaStreamGetCaptureInfo(Stream*, int* status, unsigned long long* id, void**, const void***, const void**, size_t*) {
  *status = 0;  // the signature of CUDA 13
  if (id) *id = 0;
  return Success;
}
API int cudaThreadExchangeStreamCaptureMode(int*) { return Success; }
API int cudaLaunchHostFunc(Stream*, void (*function)(void*), void* argument) { ENTER_CONTEXT(); function(argument); return Success; }
API int cudaStreamAddCallback(Stream* stream, void (*function)(Stream*, int, void*), void* argument, unsigned) {
  ENTER_CONTEXT();
  function(stream, Success, argument);
  return Success;
}
API int cudaEventCreateWithFlags(Event** event, unsigned) { ENTER_CONTEXT(); *event = new Event; return Success; }
API int cudaEventCreate(Event** event) { return cudaEventCreateWithFlags(event, 0); }
API int cudaEventDestroy(Event* event) { delete event; return Success; }
API int cudaEventRecordWithFlags(Event* event, Stream*, unsigned) { ENTER_CONTEXT(); event->recorded = Clock::now(); return Success; }
API int cudaEventRecord(Event* event, Stream*) { ENTER_CONTEXT(); event->recorded = Clock::now(); return Success; }
ACCEPTED(cudaEventQuery, Event*)
ACCEPTED(cudaEventSynchronize, Event*)
API int cudaEventElapsedTime(float* milliseconds, Event* from, Event* to) {
  ENTER();
  *milliseconds = std::chrono::duration<float, std::milli>(to->recorded - from->recorded).count();
  return Success;
}
API int cudaEventElapsedTime_v2(float* milliseconds, Event* from, Event* to) { return cudaEventElapsedTime(milliseconds, from, to); }

// ---- kernels: registered and launched, never run -------------------------------------------------------
API void** __cudaRegisterFatBinary(void*) { static void* handle; return &handle; }
API void __cudaRegisterFatBinaryEnd(void**) {}
API void __cudaUnregisterFatBinary(void**) {}
API void __cudaRegisterFunction() {}
API void __cudaRegisterVar() {}
API char __cudaInitModule(void**) { return 1; }
API unsigned __cudaPushCallConfiguration() { return 0; }
API int __cudaPopCallConfiguration() { return Success; }
API int __cudaGetKernel(void**, const void*) { return Success; }
ACCEPTED(cudaLaunchKernel, ...)
ACCEPTED(cudaLaunchKernelExC, ...)
API int __cudaLaunchKernel() { return cudaLaunchKernel(0); }
API int cudaFuncSetAttribute() { return Success; }
API int cudaFuncGetAttributes(char* out, const void*) {
  ENTER();
  memset(out, 0, 144);
  *(int*)(out + 24) = 1024;  // threads of a block
  *(int*)(out + 28) = 32;    // registers
  return Success;
}
API int cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks) { *blocks = 1; return Success; }
